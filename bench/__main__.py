"""`python -m bench`: measure the service and others in turn on one instance. Prints a table for each part."""

import argparse
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar

from bench import cost, create_poll, deliveries, footprint, guard, life, long_lists
from bench.http import NotMeasurable
from bench.rounds import comparison, log, machine
from bench.stack import DetachedStack
from config.capacity.databases import Refused
from config.devstack import ports

# The rate limit is never reached. With the default burst a web process takes six requests from Redis at once,
# as in production. The workers are separate as in production: the codes of earlier rounds cause thousands of
# inquiries, which delay webhooks in a common process.
SETTINGS = {"RATE_LIMIT": "1000000", "RATE_LIMIT_BURST": "200", "SEPARATE_WORKERS": "1"}
# On a disk, so that commits are real; /tmp is memory on some systems.
DISK = Path("/var/tmp")
PARTS = ("footprint", "life", *create_poll.PARTS, "lists", "deliver")


def main() -> None:
    options = _options()
    home = Path(tempfile.mkdtemp(prefix="thai-qr-bench-", dir=DISK if DISK.is_dir() else None))
    home.chmod(0o711)
    try:
        for table in _tables(home, options):
            print(table, end="\n\n")
    except (NotMeasurable, Refused) as refusal:
        sys.exit(f"Not measured: {refusal}")
    finally:
        shutil.rmtree(home, ignore_errors=True)
    print(machine())


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    add = parser.add_argument
    add("--only", nargs="+", choices=PARTS, default=PARTS, help="some parts (all)", metavar="PART")
    add("--seconds", type=float, default=3.0, help="length of a round of requests (3)")
    add("--rounds", type=int, default=5, help="rounds of each contestant (5)")
    add("--rows", type=int, default=long_lists.LONG_ROWS, help=f"of the long lists ({long_lists.LONG_ROWS})")
    add("--quick", action="store_true", help="compare create and poll with the figures of the last commit")
    add("--keep", action="store_true", help="the same, and store the ratios in bench/figures.json")
    return parser.parse_args()


def _tables(home: Path, options: argparse.Namespace) -> Iterator[str]:
    parts, rounds = options.only, options.rounds
    if options.quick or options.keep:
        with _instance(home) as stack:
            results = create_poll.measure(stack, [*create_poll.PARTS], warm_up=1.0, seconds=1.5, rounds=8)
        yield guard.compare(results, is_kept=options.keep)
        return
    if "footprint" in parts:
        yield footprint.measure(home / "idle")
    if {*parts} == {"footprint"}:
        return
    with _instance(home) as stack:
        if "life" in parts:  # first, because the rows of other parts would not pass the audit
            yield from comparison("whole lives", life.measure(stack, home, rounds))
        if asked := [part for part in create_poll.PARTS if part in parts]:
            results = create_poll.measure(stack, asked, warm_up=1.5, seconds=options.seconds, rounds=rounds)
            for title, candidates in results.items():
                yield from comparison(title, candidates)
        if "lists" in parts:
            yield long_lists.measure(stack, options.rows)
        if "deliver" in parts:
            yield from comparison("messages to one endpoint", deliveries.measure(stack, rounds))


class _Instance(DetachedStack):
    """With a second web server, which counts as one of its processes."""

    second: ClassVar[dict[str, int]] = {}

    @property
    def pids(self) -> dict[str, int]:
        return {**super().pids, **self.second}


@contextmanager
def _instance(home: Path) -> Iterator[DetachedStack]:
    """An instance, and a second web server at its BASE_URL, where the workers find the sandbox bank.

    They ask the bank about each code. A real bank is no part of the web server that is measured.
    """
    log("Starting an instance ...")
    port = ports.pick()
    with _Instance(home / "instance", **SETTINGS, BASE_URL=f"http://127.0.0.1:{port}") as stack:
        cost.prepare(stack)
        environ = {**stack.environ, **stack.env, "PORT": str(port), "WEB_WORKERS": "1"}
        with create_poll.server([sys.executable, "-m", "config.server"], port, environ) as pid:
            stack.second["second web"] = pid
            yield stack


if __name__ == "__main__":
    main()
