"""`python -m bench.sweep_driver ...`: run a sweep on a database without workers. Prints JSON."""

import argparse
import json
import os
import time
from collections.abc import Callable
from datetime import datetime
from typing import Any

import django

# Standard output is for the result.
os.environ["LOG_STREAM"] = "stderr"
django.setup()

from core import clock  # noqa: E402
from counts import counting  # noqa: E402
from ledger import services as ledger  # noqa: E402
from operations.audit import runner  # noqa: E402
from payments import expiry_sweep  # noqa: E402


def main() -> None:
    parser = argparse.ArgumentParser(prog="bench.sweep_driver", description=__doc__)
    parser.add_argument("sweep", choices=SWEEPS)
    parser.add_argument("now", nargs="?", type=datetime.fromisoformat)
    given = parser.parse_args()
    print(json.dumps(SWEEPS[given.sweep](given.now or clock.now())))


def expire(now: datetime) -> dict[str, float]:
    """Expire what is due at `now`."""
    started = time.perf_counter()
    count = expiry_sweep.expire_due(now=now)
    return {"rows": count, "seconds": time.perf_counter() - started}


def audit(now: datetime) -> dict[str, Any]:
    """Run the audit. `rules` are the slowest ones with their seconds."""
    seconds: dict[str, float] = {}
    started = last = time.perf_counter()
    found: list[str] = []
    names = iter(rule.name for rule in runner.RULES)

    def note(_: int) -> None:
        nonlocal last
        seconds[next(names)] = time.perf_counter() - last
        last = time.perf_counter()

    with runner.snapshot():
        found += [str(each) for each in runner.differences(on_progress=note)][:5]
    slowest = sorted(seconds.items(), key=lambda item: -item[1])[:8]
    return {"seconds": time.perf_counter() - started, "differences": found, "rules": slowest}


def roll_up_ledger(now: datetime) -> list[tuple[int, float]]:
    """Run the periodic roll-up until nothing is pending. The rows and seconds of each run."""
    return _until_done(lambda: ledger.roll_up_due(now=now))


def roll_up_counts(now: datetime) -> list[tuple[int, float]]:
    return _until_done(counting.roll_up)


def _until_done(run: Callable[[], int]) -> list[tuple[int, float]]:
    """Two runs that find nothing: one may have met the lock of somebody who is beside."""
    runs: list[tuple[int, float]] = []
    while len(runs) < 2 or runs[-1][0] or runs[-2][0]:
        started = time.perf_counter()
        runs.append((run(), time.perf_counter() - started))
    return runs


SWEEPS: dict[str, Callable[[datetime], Any]] = {
    each.__name__: each for each in (expire, audit, roll_up_ledger, roll_up_counts)
}


if __name__ == "__main__":
    main()
