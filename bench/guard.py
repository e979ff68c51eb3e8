"""Compares this run with the figures of the last commit: `make bench-quick`.

Rates depend on the machine, so only ratios to the peer are kept, for each number of processors.
"""

import json
import os
import random
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median

from bench.create_poll import PEER, SERVER_TIME
from bench.rounds import RATE, Candidate, ratios, table

FIGURES = Path(__file__).with_name("figures.json")
SAMPLES, SEED = 2000, 20261123
MACHINE = f"{os.cpu_count()} processors"


def compare(results: Mapping[str, Sequence[Candidate]], *, is_kept: bool) -> str:
    """How many times as good as the peer (above 1 is better), with 95 % intervals and the committed figures.

    is_kept: store the ratios as the figures of this number of processors.
    """
    known: dict[str, dict[str, float]] = json.loads(FIGURES.read_text())
    committed, found = known.get(MACHINE, {}), {}
    rows: list[tuple[str | float | None, ...]] = []
    for name, each in _ratios(results):
        found[name] = round(median(each), 2)
        low, high = _interval(each)
        before = committed.get(name)
        verdict = "slower" if before and high < before else "faster" if before and low > before else ""
        rows.append((name, median(each), f"{low:.2f} to {high:.2f}", before, verdict))
    if is_kept:
        FIGURES.write_text(json.dumps(known | {MACHINE: found}, indent=2, sort_keys=True) + "\n")
    return table([f"of {PEER}", "ratio", "95 %", "committed", ""], rows)


def _ratios(results: Mapping[str, Sequence[Candidate]]) -> Iterator[tuple[str, list[float]]]:
    """The figures of each operation. Rounds are compared in pairs."""
    for operation, (ours, peer) in results.items():
        yield f"{operation}: requests per second", ratios(RATE, ours, peer)
        if times := ratios(SERVER_TIME, peer, ours):  # none without the /proc of Linux
            yield f"{operation}: processor time", times


def _interval(found: Sequence[float]) -> tuple[float, float]:
    """The 95 % interval of the median, by bootstrap."""
    chance = random.Random(SEED)
    medians = sorted(median(chance.choices(found, k=len(found))) for _ in range(SAMPLES))
    return medians[int(0.025 * SAMPLES)], medians[int(0.975 * SAMPLES)]
