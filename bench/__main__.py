"""`python -m bench`: the service, a hand-written peer and pgbench, in turn, on one instance. One table."""

import argparse
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.contest import CREATE, POLL, Contest, Contestant, Pace, Refused, Server
from bench.table import caption, table
from config.devstack import ports
from tests.stack import ROOT, Stack, wait_until

# The limiter counts as ever; it just never has a reason to refuse.
CEILING = {"RATE_LIMIT": "1000000", "RATE_LIMIT_BURST": "2000000"}
# A disk, so that a commit costs what it costs; /tmp is memory on some systems.
DISK = Path("/var/tmp")
WARM_UP_SECONDS = 1.5
PEER_SECONDS = 30.0


def main() -> None:
    options = _options()
    home = Path(tempfile.mkdtemp(prefix="thai-qr-bench-", dir=DISK if DISK.is_dir() else None))
    home.chmod(0o711)
    try:
        _tell("Starting an instance and the peer ...")
        with Stack(home / "instance", **CEILING) as stack, _peer(stack) as peer:
            results = _measure(Contest(stack, peer, home), options)
    except Refused as refusal:
        sys.exit(f"Not measured: {refusal}")
    finally:
        shutil.rmtree(home, ignore_errors=True)
    _tell("")
    print(table(results), caption(options.connections, options.rounds, options.seconds), sep="\n\n")


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--seconds", type=float, default=4.0, help="length of a round (4)")
    parser.add_argument("--rounds", type=int, default=5, help="rounds of each contestant (5)")
    parser.add_argument("--connections", type=int, default=8, help="requests under way at once (8)")
    return parser.parse_args()


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


def _measure(contest: Contest, options: argparse.Namespace) -> dict[str, list[Contestant]]:
    contest.prepare()
    results = {operation: contest.contestants(operation) for operation in (CREATE, POLL)}
    pace = Pace(options.seconds, options.connections)
    for operation, contestants in results.items():
        _warm_up(contestants, pace)
        for number in range(1, options.rounds + 1):
            _play(operation, contestants, pace, f"{number}/{options.rounds}")
    return results


def _warm_up(contestants: list[Contestant], pace: Pace) -> None:
    for each in contestants:
        each.play(Pace(WARM_UP_SECONDS, pace.connections))


def _play(operation: str, contestants: list[Contestant], pace: Pace, number: str) -> None:
    for each in contestants:
        each.rounds.append(each.play(pace))
    rates = ", ".join(f"{each.name} {each.rounds[-1].rate:,.0f}" for each in contestants)
    _tell(f"{time.strftime('%H:%M:%S')}  {operation} {number}: {rates} per second")


def _tell(text: str) -> None:
    """Progress goes to standard error, the table alone to standard output."""
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
