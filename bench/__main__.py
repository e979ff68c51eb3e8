"""`python -m bench`: the service beside others, in turn, on one instance. A table for each kind of work."""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from bench import deliveries, history, table
from bench.contest import CREATE, POLL, Contest, Contestant, P, Pace, Refused, Server
from bench.deliveries import ALONE, BESIDE, HEALTHY, SOME, Deliveries, Told
from config.devstack import ports
from tests.stack import ROOT, Stack, wait_until

# The limiter counts as ever; it just never has a reason to refuse.
CEILING = {"RATE_LIMIT": "1000000", "RATE_LIMIT_BURST": "2000000"}
# A disk, so that a commit costs what it costs; /tmp is memory on some systems.
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
        _tell("Starting an instance ...")
        with Stack(home / "instance", **CEILING) as stack:
            tables = [
                *_requests(stack, home, options),
                *_history(stack, options),
                *_deliveries(stack, options),
            ]
    except Refused as refusal:
        sys.exit(f"Not measured: {refusal}")
    finally:
        shutil.rmtree(home, ignore_errors=True)
    _tell("")
    told = ("connections", "rounds", "seconds", "latency_seconds", "backlog")
    caption = table.caption(**{name: getattr(options, name) for name in told})
    print(*tables, caption, sep="\n\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    add = parser.add_argument
    add("--only", type=_parts, default=PARTS, help=f"some of {','.join(PARTS)} (all)")
    add("--seconds", type=float, default=3.0, help="length of a round of requests (3)")
    add("--rounds", type=int, default=5, help="rounds of each contestant (5)")
    add("--connections", type=int, default=8, help="requests under way at once (8)")
    add("--rows", type=int, default=history.LONG, help=f"of the long history ({history.LONG})")
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
        contest = Contest(stack, peer, folder)
        contest.prepare()
        results = {operation: contest.contestants(operation) for operation in operations}
        pace, warm_up = (Pace(each, options.connections) for each in (options.seconds, WARM_UP_SECONDS))
        for operation, contestants in results.items():
            _play(operation, contestants, warm_up, pace, options.rounds)
    yield table.requests(results)


@contextmanager
def _peer(stack: Stack) -> Iterator[Server]:
    """The peer with two workers on a port of its own, with the settings of the instance."""
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
    # The endpoints end first: the instance would wait for the slow one's answers.
    with deliveries.receiver() as receiver:
        told = Deliveries(stack, receiver)
        if "deliver" in options.only:
            contestants = told.contestants()
            _play("deliver", contestants, WARM_UP_MESSAGES, options.deliveries, options.rounds)
            yield table.deliveries(contestants, options.deliveries)
        if latencies := dict(_latencies(told, options)):
            yield table.latencies(latencies)


def _latencies(told: Deliveries, options: argparse.Namespace) -> Iterator[tuple[str, Told]]:
    """The slow endpoint comes last: its backlog stays."""
    seconds = options.latency_seconds
    told.steadily(BESIDE_RATE, HEALTHY // BESIDE_RATE, HEALTHY)
    if "latency" in options.only:
        for rate in RATES:
            name = f"{rate} a second to {SOME}"
            yield name, _shown(name, told.steadily(rate, seconds, SOME))
    if "slow" in options.only:
        yield ALONE, _shown(ALONE, told.steadily(BESIDE_RATE, seconds, HEALTHY))
        told.keep_slow_one_busy(options.backlog)
        yield BESIDE, _shown(BESIDE, told.steadily(BESIDE_RATE, seconds, HEALTHY))


def _shown(name: str, told: Told) -> Told:
    _tell(f"{_time()}  {name}: p95 {told.quantile(0.95):,.0f} ms")
    return told


def _play(what: str, contestants: Sequence[Contestant], warm_up: P, extent: P, rounds: int) -> None:
    for each in contestants:
        each.play(warm_up)
    for number in range(1, rounds + 1):
        for each in contestants:
            each.rounds.append(each.play(extent))
        rates = ", ".join(f"{each.name} {each.rounds[-1].rate:,.0f}" for each in contestants)
        _tell(f"{_time()}  {what} {number}/{rounds}: {rates} per second")


def _time() -> str:
    return time.strftime("%H:%M:%S")


def _tell(text: str) -> None:
    """Progress goes to standard error, the tables alone to standard output."""
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
