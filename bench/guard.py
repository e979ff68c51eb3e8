"""Compares this run with the figures of the last commit: `make bench-quick`.

Rates depend on the machine, so ratios to the peer are kept, for each number of processors. The peer writes to
the same tables, so PostgreSQL's time is compared with the peer's own, and the write-ahead log is kept in kB.
"""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median

from bench.create_poll import PARTS, PEER, SERVER_TIME
from bench.rounds import RATE, Candidate, ratios, table

FIGURES = Path(__file__).with_name("figures.json")
WAL_TOLERANCE = 0.1
MACHINE = f"{os.cpu_count()} processors"
# Its name, its rounds, the words for lower and higher than before, and the tolerance.
Figure = tuple[str, list[float], tuple[str, str], float]


def compare(results: Mapping[str, Sequence[Candidate]], *, is_kept: bool) -> str:
    """The figures with intervals, beside those of the last commit. is_kept: store them."""
    known: dict[str, dict[str, float]] = json.loads(FIGURES.read_text())
    committed, found = known.get(MACHINE, {}), {}
    rows: list[tuple[str | float | None, ...]] = []
    for name, each, (lower, higher), tolerance in _figures(results):
        found[name] = round(median(each), 2)
        # A 93 % interval of the median of eight rounds, by the binomial distribution.
        low, *_, high = sorted(each)[1:-1]
        before = committed.get(name, found[name])
        verdict = (
            lower if high < before * (1 - tolerance) else higher if low > before * (1 + tolerance) else ""
        )
        verdict = verdict if name in committed else "not stored"
        rows.append((name, median(each), f"{low:.2f} to {high:.2f}", committed.get(name), verdict))
    if is_kept:
        FIGURES.write_text(json.dumps(known | {MACHINE: found}, indent=2, sort_keys=True) + "\n")
    return table([f"of {PEER}", "now", "93 %", "committed", ""], rows)


def _figures(results: Mapping[str, Sequence[Candidate]]) -> Iterator[Figure]:
    """Rounds are compared in pairs."""
    for operation, (ours, peer) in results.items():
        speed = ("slower", "faster"), 0.0
        yield f"{operation}: requests per second", ratios(ours, peer, RATE, RATE), *speed
        yield f"{operation}: processor time", ratios(peer, ours, SERVER_TIME, SERVER_TIME), *speed
        yield f"{operation}: time of PostgreSQL", ratios(peer, ours, SERVER_TIME, "postgres us"), *speed
        if operation == PARTS["create"]:
            # What the background writes comes in batches, so the round with the least of it counts.
            least = min((each["WAL bytes"] - each["full pages"]) / 1000 for each in ours.rounds)
            yield f"{operation}: kB of WAL", [least] * len(ours.rounds), ("less", "more"), WAL_TOLERANCE
