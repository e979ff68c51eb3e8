"""`python -m bench`: measure the service and others in turn on one instance. Prints a table for each part."""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench import deliveries, footprint, guard, history, life, report
from bench.comparison import CREATE, POLL, Candidate, LoadProfile, P, RequestComparison, Server
from bench.deliveries import DeliveryBenchmark
from bench.floor import Floor
from bench.load import NotMeasurable
from config.devstack import ports
from tests.stack import ROOT, Stack, wait_until

# The rate limit is never reached. With the default burst a web process takes two requests from Redis at once,
# as in production. The workers are separate as in production: the codes of earlier rounds cause thousands of
# inquiries, which delay webhooks in a common process.
SETTINGS = {"RATE_LIMIT": "1000000", "RATE_LIMIT_BURST": "200", "SEPARATE_WORKERS": "1"}
# On a disk, so that commits are real; /tmp is memory on some systems.
DISK = Path("/var/tmp")
WARM_UP_SECONDS = 1.5
WARM_UP_MESSAGES = 500
SERVER_SECONDS = 120.0
HISTORY_ROUNDS, HISTORY_SECONDS = 3, 0.3
REQUESTS = {"create": CREATE, "poll": POLL}
PARTS = (*REQUESTS, "life", "history", "deliver", "footprint")
# The webhooks are verified by then, and all sessions have planned their statements.
LIFE_WARM_UP_SECONDS = 3.0
QUICK_ROUNDS, QUICK_SECONDS = 8, 1.5
PROFILE_SECONDS, PROFILER_START_SECONDS, DEFAULT_CONNECTIONS = 10, 2, 8


def main() -> None:
    options = _options()
    home = Path(tempfile.mkdtemp(prefix="thai-qr-bench-", dir=DISK if DISK.is_dir() else None))
    home.chmod(0o711)
    try:
        if options.profile:
            print(_profile(home, options.profile))
            return
        if options.quick or options.keep:
            print(_quick(home, options))
            return
        tables = [*_footprint(home, options)]
        if options.only != ["footprint"]:
            _log("Starting an instance ...")
            with _instance(home) as stack:
                tables += [
                    # First, because the rows of other parts would not pass the audit.
                    *_lives(stack, home, options),
                    *_requests(stack, home, options),
                    *_history(stack, options),
                    *_deliveries(stack, options),
                ]
    except NotMeasurable as refusal:
        sys.exit(f"Not measured: {refusal}")
    finally:
        shutil.rmtree(home, ignore_errors=True)
    _log("")
    names = ("connections", "rounds", "seconds", "lives", "life_seconds")
    caption = report.caption(**{name: getattr(options, name) for name in names})
    print(*tables, caption, sep="\n\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    add = parser.add_argument
    add("--only", type=_parts, default=PARTS, help=f"some of {','.join(PARTS)} (all)")
    add("--seconds", type=float, default=3.0, help="length of a round of requests (3)")
    add("--rounds", type=int, default=5, help="rounds of each contestant (5)")
    add("--connections", type=int, default=DEFAULT_CONNECTIONS, help="requests under way at once (8)")
    add("--rows", type=int, default=history.LONG_ROWS, help=f"of the long lists ({history.LONG_ROWS})")
    add("--deliveries", type=int, default=2000, help="messages in a round of deliveries (2000)")
    add("--lives", type=int, default=16, help="lives under way at once (16)")
    add("--life-seconds", type=float, default=5.0, help="length of a round of lives (5)")
    add("--quick", action="store_true", help="compare create and poll with the figures of the last commit")
    add("--keep", action="store_true", help="the same, and store the ratios in bench/figures.json")
    profiled = (*REQUESTS, "deliver")
    add("--profile", choices=profiled, help="write a flame graph of the web server or the webhook worker")
    return parser.parse_args()


def _parts(text: str) -> list[str]:
    parts = text.split(",")
    if unknown := set(parts) - set(PARTS):
        raise argparse.ArgumentTypeError(f"{', '.join(sorted(unknown))}: not one of {', '.join(PARTS)}")
    return parts


@contextmanager
def _instance(home: Path) -> Iterator[Stack]:
    """An instance, and a second web server at its BASE_URL, where the workers find the sandbox bank.

    They ask the bank about each code. A real bank is no part of the web server that is measured.
    """
    port = ports.pick()
    with Stack(home / "instance", **SETTINGS, BASE_URL=f"http://127.0.0.1:{port}") as stack:
        command = [sys.executable, "-m", "config.server"]
        with _server(command, port, {**stack.environ, **stack.env, "PORT": str(port), "WEB_WORKERS": "1"}):
            yield stack


def _quick(home: Path, options: argparse.Namespace) -> str:
    """Compare create and poll with the peer, and the ratios with those of the last commit."""
    with _instance(home) as stack, _peer(stack) as peer:
        comparison = RequestComparison(stack, peer, home)
        comparison.prepare()
        results = {operation: comparison.servers_only(operation) for operation in REQUESTS.values()}
        warm_up, profile = (LoadProfile(each, options.connections) for each in (1.0, QUICK_SECONDS))
        for operation, candidates in results.items():
            _run_rounds(operation, candidates, warm_up, profile, QUICK_ROUNDS)
    found = list(guard.figures(results))
    if options.keep:
        guard.write(found)
    return report.guard(found)


def _profile(home: Path, part: str) -> str:
    """Draw a flame graph of the web server, or of the webhook worker, under load; return where it is.

    Raises NotMeasurable.
    """
    picture = Path(f"profile-{part}.svg")
    with _instance(home) as stack:
        if part == "deliver":
            _profile_deliveries(stack, picture)
        else:
            _profile_requests(stack, home, part, picture)
    return f"{picture}: time with the interpreter lock, by function. Open it in a browser."


def _profile_requests(stack: Stack, home: Path, part: str, picture: Path) -> None:
    with _peer(stack) as peer:
        comparison = RequestComparison(stack, peer, home)
        comparison.prepare()
        ours, _ = comparison.servers_only(REQUESTS[part])
        with _profiled(stack.pids["web"], picture):
            ours.run_round(LoadProfile(PROFILE_SECONDS + PROFILER_START_SECONDS, DEFAULT_CONNECTIONS))


def _profile_deliveries(stack: Stack, picture: Path) -> None:
    with deliveries.receiver() as receiver:
        ours, *_ = DeliveryBenchmark(stack, receiver).candidates()
        warm_up = ours.run_round(WARM_UP_MESSAGES)
        with _profiled(stack.pids["webhooks"], picture):
            ours.run_round(int(warm_up.rate * PROFILE_SECONDS))


@contextmanager
def _profiled(pid: int, picture: Path) -> Iterator[None]:
    """Profile a process and its children during the block. Raises NotMeasurable."""
    command = ["record", "--pid", str(pid), "--subprocesses", "--gil"]
    command += ["--duration", str(PROFILE_SECONDS), "--rate", "500", "--output", str(picture)]
    profiler = subprocess.Popen([Path(sys.executable).with_name("py-spy"), *command], stdout=sys.stderr)
    yield
    if profiler.wait() != 0:
        raise NotMeasurable("py-spy may not read other processes here; root may.")


def _footprint(folder: Path, options: argparse.Namespace) -> Iterator[str]:
    if "footprint" in options.only:
        _log("Starting an instance twice, and leaving it idle ...")
        yield report.footprint(footprint.measure(folder / "idle"))


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
    command = [sys.executable, "-m", "uvicorn", "bench.peer:app", "--workers", "2", "--port", str(port)]
    command += ["--loop", "uvloop", "--http", "httptools", "--no-access-log", "--log-level", "warning"]
    with _server(command, port, {**stack.environ, **stack.env}) as pid:
        yield Server(port, pid)


@contextmanager
def _server(command: Sequence[str], port: int, environ: Mapping[str, str]) -> Iterator[int]:
    """Run a server that listens to the port; yield its process id."""
    process = subprocess.Popen(command, cwd=ROOT, env=environ, stdout=sys.stderr)
    try:
        wait_until(lambda: _listens(port) or process.poll() is not None, SERVER_SECONDS)
        yield process.pid
    finally:
        process.terminate()
        process.wait()


def _listens(port: int) -> bool:
    return not ports.is_free(port)


def _history(stack: Stack, options: argparse.Namespace) -> Iterator[str]:
    if "history" in options.only:
        yield history.measure(stack, rows=options.rows, rounds=HISTORY_ROUNDS, seconds=HISTORY_SECONDS)


def _lives(stack: Stack, folder: Path, options: argparse.Namespace) -> Iterator[str]:
    if "life" in options.only:
        with life.opened(stack) as benchmark:
            floor = Floor(stack, folder, options.lives)
            candidates = benchmark.candidates(floor, options.lives)
            _run_rounds("life", candidates, LIFE_WARM_UP_SECONDS, options.life_seconds, options.rounds)
            benchmark.check()
            life.check_floor(floor)
        yield report.life(candidates)


def _deliveries(stack: Stack, options: argparse.Namespace) -> Iterator[str]:
    if "deliver" in options.only:
        with deliveries.receiver() as receiver:
            candidates = DeliveryBenchmark(stack, receiver).candidates()
            _run_rounds("deliver", candidates, WARM_UP_MESSAGES, options.deliveries, options.rounds)
        yield report.deliveries(candidates, options.deliveries)


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
