"""`python -m bench`: measure the service and others in turn on one instance. Prints a table for each part."""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench import deliveries, history, report
from bench.comparison import CREATE, POLL, Candidate, LoadProfile, NotMeasurable, P, RequestComparison, Server
from bench.deliveries import (
    BESIDE_SLOW,
    HEALTHY_ENDPOINTS,
    SOME_ENDPOINTS,
    WITHOUT_SLOW,
    DeliveryBenchmark,
    DeliveryLatencies,
)
from config.devstack import ports
from tests.stack import ROOT, Stack, wait_until

# The rate limiter counts as usual, but its limit is never reached.
RAISED_RATE_LIMIT = {"RATE_LIMIT": "1000000", "RATE_LIMIT_BURST": "2000000"}
# On a disk, so that commits are real; /tmp is memory on some systems.
DISK = Path("/var/tmp")
WARM_UP_SECONDS = 1.5
WARM_UP_MESSAGES = 500
PEER_SECONDS = 30.0
HISTORY_ROUNDS, HISTORY_SECONDS = 2, 0.5
REQUESTS = {"create": CREATE, "poll": POLL}
PARTS = (*REQUESTS, "history", "deliver", "latency", "slow")
RATES = (50, 200)
BESIDE_RATE = 50


def main() -> None:
    options = _options()
    home = Path(tempfile.mkdtemp(prefix="thai-qr-bench-", dir=DISK if DISK.is_dir() else None))
    home.chmod(0o711)
    try:
        _log("Starting an instance ...")
        with Stack(home / "instance", **RAISED_RATE_LIMIT) as stack:
            tables = [
                *_requests(stack, home, options),
                *_history(stack, options),
                *_deliveries(stack, options),
            ]
    except NotMeasurable as refusal:
        sys.exit(f"Not measured: {refusal}")
    finally:
        shutil.rmtree(home, ignore_errors=True)
    _log("")
    result = ("connections", "rounds", "seconds", "latency_seconds", "backlog")
    caption = report.caption(**{name: getattr(options, name) for name in result})
    print(*tables, caption, sep="\n\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    add = parser.add_argument
    add("--only", type=_parts, default=PARTS, help=f"some of {','.join(PARTS)} (all)")
    add("--seconds", type=float, default=3.0, help="length of a round of requests (3)")
    add("--rounds", type=int, default=5, help="rounds of each contestant (5)")
    add("--connections", type=int, default=8, help="requests under way at once (8)")
    add("--rows", type=int, default=history.LONG_ROWS, help=f"of the long history ({history.LONG_ROWS})")
    add("--deliveries", type=int, default=2000, help="messages in a round of deliveries (2000)")
    add("--latency-seconds", type=int, default=10, help="how long to publish at each rate (10)")
    add("--backlog", type=int, default=50_000, help="what the slow endpoint is behind with (50000)")
    return parser.parse_args()


def _parts(text: str) -> list[str]:
    parts = text.split(",")
    if unknown := set(parts) - set(PARTS):
        raise argparse.ArgumentTypeError(f"{', '.join(sorted(unknown))}: not one of {', '.join(PARTS)}")
    return parts


def _requests(stack: Stack, folder: Path, options: argparse.Namespace) -> Iterator[str]:
    operations = [operation for part, operation in REQUESTS.items() if part in options.only]
    if not operations:
        return
    with _peer(stack) as peer:
        comparison = RequestComparison(stack, peer, folder)
        comparison.prepare()
        results = {operation: comparison.candidates(operation) for operation in operations}
        profile, warm_up = (
            LoadProfile(each, options.connections) for each in (options.seconds, WARM_UP_SECONDS)
        )
        for operation, candidates in results.items():
            _run_rounds(operation, candidates, warm_up, profile, options.rounds)
    yield report.requests(results)


@contextmanager
def _peer(stack: Stack) -> Iterator[Server]:
    """Run the peer with two workers and the settings of the instance."""
    port = ports.pick()
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "uvicorn", "bench.peer:app", "--workers", "2", "--port", str(port)),
            *("--loop", "uvloop", "--http", "httptools", "--no-access-log", "--log-level", "warning"),
        ],
        cwd=ROOT,
        env={**stack.environ, **stack.env},
    )
    try:
        wait_until(lambda: _listens(port) or process.poll() is not None, PEER_SECONDS)
        yield Server(port, process.pid)
    finally:
        process.terminate()
        process.wait()


def _listens(port: int) -> bool:
    return not ports.is_free(port)


def _history(stack: Stack, options: argparse.Namespace) -> Iterator[str]:
    if "history" in options.only:
        yield history.measure(stack, rows=options.rows, rounds=HISTORY_ROUNDS, seconds=HISTORY_SECONDS)


def _deliveries(stack: Stack, options: argparse.Namespace) -> Iterator[str]:
    if not {"deliver", "latency", "slow"}.intersection(options.only):
        return
    # The endpoints end before the instance, which would wait for the slow endpoint.
    with deliveries.receiver() as receiver:
        result = DeliveryBenchmark(stack, receiver)
        if "deliver" in options.only:
            candidates = result.candidates()
            _run_rounds("deliver", candidates, WARM_UP_MESSAGES, options.deliveries, options.rounds)
            yield report.deliveries(candidates, options.deliveries)
        if latencies := dict(_latencies(result, options)):
            yield report.latencies(latencies)


def _latencies(
    result: DeliveryBenchmark, options: argparse.Namespace
) -> Iterator[tuple[str, DeliveryLatencies]]:
    """Measure the slow endpoint last, because its backlog stays."""
    seconds = options.latency_seconds
    result.measure_latency(BESIDE_RATE, HEALTHY_ENDPOINTS // BESIDE_RATE, HEALTHY_ENDPOINTS)
    if "latency" in options.only:
        for rate in RATES:
            name = f"{rate} a second to {SOME_ENDPOINTS}"
            yield name, _report_latency(name, result.measure_latency(rate, seconds, SOME_ENDPOINTS))
    if "slow" in options.only:
        yield (
            WITHOUT_SLOW,
            _report_latency(WITHOUT_SLOW, result.measure_latency(BESIDE_RATE, seconds, HEALTHY_ENDPOINTS)),
        )
        result.fill_slow_endpoint(options.backlog)
        yield (
            BESIDE_SLOW,
            _report_latency(BESIDE_SLOW, result.measure_latency(BESIDE_RATE, seconds, HEALTHY_ENDPOINTS)),
        )


def _report_latency(name: str, result: DeliveryLatencies) -> DeliveryLatencies:
    _log(f"{_time()}  {name}: p95 {result.quantile(0.95):,.0f} ms")
    return result


def _run_rounds(
    what: str, candidates: Sequence[Candidate[P, Any]], warm_up: P, extent: P, rounds: int
) -> None:
    for each in candidates:
        each.run_round(warm_up)
    for number in range(1, rounds + 1):
        for each in candidates:
            each.rounds.append(each.run_round(extent))
        rates = ", ".join(f"{each.name} {each.rounds[-1].rate:,.0f}" for each in candidates)
        _log(f"{_time()}  {what} {number}/{rounds}: {rates} per second")


def _time() -> str:
    return time.strftime("%H:%M:%S")


def _log(text: str) -> None:
    """Progress goes to standard error, the tables to standard output."""
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
