"""Compares this run with the figures of the last commit: `make bench-quick`.

Rates depend on the machine, so only ratios to the peer are kept, for each number of processors.
"""

import json
import os
import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from bench.comparison import OURS, PEER, Candidate, Round

FIGURES = Path(__file__).with_name("figures.json")
SAMPLES, SEED = 2000, 20261123
RATE, SERVER_TIME = "requests per second", "processor time"
Results = Mapping[str, Sequence[Candidate[Any, Round]]]


@dataclass(frozen=True)
class Figure:
    """How many times as good as the peer, with a 95 % confidence interval. Above 1 is better."""

    operation: str
    name: str
    ratio: float
    low: float
    high: float
    committed: float | None

    @property
    def verdict(self) -> str:
        if self.committed is None:
            return "no committed figure"
        if self.high < self.committed:
            return "slower"
        return "faster" if self.low > self.committed else "no change"


def figures(results: Results) -> Iterator[Figure]:
    """The figures of each operation. Rounds are compared in pairs."""
    committed = _committed()
    for operation, candidates in results.items():
        by_name = {each.name: each.rounds for each in candidates}
        pairs = list(zip(by_name[OURS], by_name[PEER], strict=True))
        yield _figure(operation, RATE, [ours.rate / peer.rate for ours, peer in pairs], committed)
        times = [(ours.server_us, peer.server_us) for ours, peer in pairs]
        ratios = [peer / ours for ours, peer in times if ours and peer]
        if len(ratios) == len(pairs):
            yield _figure(operation, SERVER_TIME, ratios, committed)


def write(found: Sequence[Figure]) -> None:
    """Store the ratios as the figures of this number of processors."""
    known = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    known[_machine_class()] = {_key(each.operation, each.name): round(each.ratio, 2) for each in found}
    FIGURES.write_text(json.dumps(known, indent=2, sort_keys=True) + "\n")


def _figure(operation: str, name: str, ratios: list[float], committed: Mapping[str, float]) -> Figure:
    low, high = _interval(ratios)
    return Figure(operation, name, median(ratios), low, high, committed.get(_key(operation, name)))


def _interval(ratios: list[float]) -> tuple[float, float]:
    """The 95 % interval of the median, by bootstrap."""
    chance = random.Random(SEED)
    medians = sorted(median(chance.choices(ratios, k=len(ratios))) for _ in range(SAMPLES))
    return medians[int(0.025 * SAMPLES)], medians[int(0.975 * SAMPLES)]


def _committed() -> dict[str, float]:
    known: dict[str, dict[str, float]] = json.loads(FIGURES.read_text()) if FIGURES.exists() else {}
    return known.get(_machine_class(), {})


def _machine_class() -> str:
    return f"{os.cpu_count()} processors"


def _key(operation: str, name: str) -> str:
    return f"{operation}: {name}"
