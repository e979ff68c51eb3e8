"""Candidates in turn, round by round, and the tables of their figures."""

import os
import platform
import statistics
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from statistics import median

from bench.cost import DATABASE
from bench.http import NotMeasurable
from config.devstack.postgres_programs import find_programs, full_version

OURS, RATE = "Thai QR Payments", "per second"
PERCENTS = (50, 95, 99)
# The figures of a round by the heading of their column.
Figures = dict[str, float]


@dataclass
class Candidate:
    """Runs rounds. `run_round` gets their extent: seconds, or a number of messages."""

    name: str
    run_round: Callable[[float], Figures]
    rounds: list[Figures] = field(default_factory=list)

    def play(self, extent: float) -> Figures:
        """Raises NotMeasurable for a round without results."""
        try:
            return self.run_round(extent)
        except (ZeroDivisionError, statistics.StatisticsError):
            raise NotMeasurable(f"A round of {self.name} had no results.") from None

    def median(self, column: str) -> float | None:
        values = [each[column] for each in self.rounds if column in each]
        return median(values) if values else None


def run_rounds(
    what: str, candidates: Sequence[Candidate], *, warm_up: float, extent: float, rounds: int
) -> None:
    """Run each candidate in turn, so that a slow moment of the machine affects all of them.

    Raises NotMeasurable.
    """
    for each in candidates:
        each.play(warm_up)
    for number in range(1, rounds + 1):
        for each in candidates:
            each.rounds.append(each.play(extent))
        rates = ", ".join(f"{each.name} {each.rounds[-1][RATE]:,.0f}" for each in candidates)
        log(f"{time.strftime('%H:%M:%S')}  {what} {number}/{rounds}: {rates} per second")


def ratios(one: Candidate, other: Candidate, column: str, beside: str) -> list[float]:
    """The ratios of the rounds, in pairs: of a column of one and a column of the other."""
    return [mine[column] / theirs[beside] for mine, theirs in zip(one.rounds, other.rounds, strict=True)]


def comparison(title: str, candidates: Sequence[Candidate]) -> Iterator[str]:
    """Medians of the rounds, and of the ratios to the last candidate. Below, what each costs the database."""
    *_, floor = candidates
    columns = [column for column in candidates[0].rounds[0] if column not in DATABASE]
    shares = {each.name: median(ratios(each, floor, RATE, RATE)) for each in candidates}
    rows = [[each.name, *map(each.median, columns), shares[each.name]] for each in candidates]
    yield table([title, *columns, f"of {floor.name[:3]}"], rows)
    costs = [[each.name, *map(each.median, DATABASE)] for each in candidates]
    yield table([f"{title}: database", *DATABASE], costs)


def quantiles(seconds: Iterable[float]) -> Figures:
    """Quantiles in milliseconds."""
    cuts = statistics.quantiles(seconds, n=100, method="inclusive")
    return {f"p{percent} ms": 1000 * cuts[percent - 1] for percent in PERCENTS}


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
