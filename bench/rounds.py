"""Candidates in turn, round by round, and the tables of their figures."""

import os
import platform
import sys
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median

from config.devstack.postgres_programs import find_programs, full_version

OURS, RATE = "Thai QR Payments", "per second"
SHARES = {"p50 ms": 0.5, "p95 ms": 0.95, "p99 ms": 0.99}
# The figures of a round by the heading of their column.
Figures = dict[str, float]


@dataclass
class Candidate:
    """Runs rounds. `run_round` gets their extent: seconds, or a number of messages."""

    name: str
    run_round: Callable[[float], Figures]
    rounds: list[Figures] = field(default_factory=list)

    def median(self, column: str) -> float | None:
        values = [each[column] for each in self.rounds if column in each]
        return median(values) if values else None


def run_rounds(
    what: str, candidates: Sequence[Candidate], *, warm_up: float, extent: float, rounds: int
) -> None:
    """Run each candidate in turn, so that a slow moment of the machine affects all of them."""
    for each in candidates:
        each.run_round(warm_up)
    for number in range(1, rounds + 1):
        for each in candidates:
            each.rounds.append(each.run_round(extent))
        rates = ", ".join(f"{each.name} {each.rounds[-1][RATE]:,.0f}" for each in candidates)
        log(f"{time.strftime('%H:%M:%S')}  {what} {number}/{rounds}: {rates} per second")


def ratios(column: str, one: Candidate, other: Candidate) -> list[float]:
    """The ratios of the rounds, in pairs; none if one of them lacks the figure."""
    pairs = (
        (mine.get(column), theirs.get(column)) for mine, theirs in zip(one.rounds, other.rounds, strict=True)
    )
    return [mine / theirs for mine, theirs in pairs if mine and theirs]


def comparison(title: str, candidates: Sequence[Candidate]) -> str:
    """Medians of the rounds, and of the ratios to the last candidate."""
    *_, floor = candidates
    columns = dict.fromkeys(column for each in candidates for column in each.rounds[0])
    rows = [[each.name, *map(each.median, columns), median(ratios(RATE, each, floor))] for each in candidates]
    return table([title, *columns, f"of {floor.name[:3]}"], rows)


def quantiles(seconds: Iterable[float]) -> Figures:
    """Quantiles in milliseconds; 0 of nothing."""
    ordered = sorted(seconds) or [0.0]
    return {
        name: 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]
        for name, share in SHARES.items()
    }


def table(headings: Sequence[str], rows: Iterable[Sequence[str | float | None]]) -> str:
    """Text in columns. The first column begins on the left, the others end on the right."""
    lines = [list(headings), *([_cell(value) for value in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    first, *others = (
        "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in lines
    )
    return "\n".join([first, "-" * len(first), *others])


def _cell(value: str | float | None) -> str:
    if value is None:
        return "-"
    return value if isinstance(value, str) else f"{value:,.{0 if abs(value) >= 100 else 2}f}"


def machine() -> str:
    """The machine and the versions."""
    programs = f"Python {platform.python_version()}, PostgreSQL {full_version(find_programs())}"
    return f"{os.cpu_count()} processors ({platform.machine()}), {platform.system()}, {programs}"


def log(text: str) -> None:
    """Progress goes to standard error, the tables to standard output."""
    print(text, file=sys.stderr, flush=True)


def microseconds_each(count: float, before: Mapping[str, float], after: Mapping[str, float]) -> Figures:
    """Processor time of a unit of work, by what used it."""
    return {f"{name} us": 1e6 * (after[name] - before[name]) / count for name in after}
