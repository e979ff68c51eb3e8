"""The one table of a run."""

import os
import platform
from collections.abc import Sequence
from pathlib import Path

from bench.contest import FLOOR, OURS, PEER, Contestant
from config.devstack.pginstall import find_programs, release

HEADINGS = ("", "per second", "p50 ms", "p95 ms", "p99 ms", "of (a)", "of (b)", "server us", "client us")
WIDTHS = (24, 11, 8, 8, 8, 8, 8, 11, 11)


def table(results: dict[str, Sequence[Contestant]]) -> str:
    """Medians of the rounds; a ratio is the median of the rounds' ratios, so that a busy moment cancels."""
    lines = [_line(HEADINGS), "-" * sum(WIDTHS)]
    for operation, contestants in results.items():
        by_name = {each.name: each for each in contestants}
        lines += ["", operation]
        lines += [_line(_cells(each, by_name[PEER], by_name[FLOOR])) for each in contestants]
    return "\n".join(lines)


def _cells(each: Contestant, peer: Contestant, floor: Contestant) -> tuple[str, ...]:
    return (
        f"  {each.name}",
        _number(each.median("rate"), 0),
        *(_number(each.median(name), 2) for name in ("middle", "p95", "p99")),
        "" if each is floor else _number(ratio(each, peer), 2),
        _number(ratio(each, floor), 2),
        *(_number(each.median(name), 0) for name in ("server_us", "client_us")),
    )


def ratio(one: Contestant, other: Contestant) -> float:
    """How much of the other's rate one reaches, round by round."""
    pairs = zip(one.rounds, other.rounds, strict=True)
    ordered = sorted(mine.rate / theirs.rate for mine, theirs in pairs)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"


def _line(cells: Sequence[str]) -> str:
    first, *others = zip(cells, WIDTHS, strict=True)
    return first[0].ljust(first[1]) + "".join(cell.rjust(width) for cell, width in others)


def machine() -> str:
    """What it ran on, for whoever compares two tables."""
    programs = f"Python {platform.python_version()}, PostgreSQL {release(find_programs())}"
    return f"{os.cpu_count()} processors ({_processor()}), {platform.system()}, {programs}"


def _processor() -> str:
    known = Path("/proc/cpuinfo")
    lines = known.read_text().splitlines() if known.exists() else []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.processor() or platform.machine())


def caption(connections: int, rounds: int, seconds: float) -> str:
    return (
        f"{OURS} with its default settings and the limiter's ceiling raised; {connections} connections, "
        f"{rounds} rounds of {seconds:g} s each in turn, medians.\n{machine()}"
    )
