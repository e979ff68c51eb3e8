"""The tables of the results."""

import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from bench.comparison import BASELINE, OURS, PEER, Candidate
from bench.deliveries import BARE_LOOP, URLLIB3_LOOP
from bench.footprint import Footprint
from bench.guard import Figure
from bench.life import LifeRound
from bench.lives import quantile
from config.devstack.postgres_programs import find_programs, full_version

Cells = Sequence[str]
AnyCandidate = Candidate[Any, Any]
WIDTHS = (28, 11, 8, 8, 8, 8, 8, 11, 11)
REQUESTS = ("", "per second", "p50 ms", "p95 ms", "p99 ms", "of (a)", "of (b)", "server us", "client us")
DELIVERY_WIDTHS = (28, 11, 8, 8, 11, 13, 13)
DELIVERIES = ("", "per second", "of (c)", "of (d)", "sender us", "postgres us", "receiver us")

LIFE_WIDTHS = (28, 11, 8, 8, 8, 8, 9, 11, 13, 11, 11)
LIVES = (
    "whole lives", "per second", "p50 ms", "p95 ms", "p99 ms", "of (b)", "web us", "sender us", "postgres us",
    "others us", "client us",
)  # fmt: skip


def requests(results: Mapping[str, Sequence[AnyCandidate]]) -> str:
    """Medians of the rounds. A ratio is the median of the ratios of the rounds."""
    rows: list[Cells] = []
    for operation, candidates in results.items():
        by_name = {each.name: each for each in candidates}
        rows += [("",), (operation,)]
        rows += [_request(each, by_name[PEER], by_name[BASELINE]) for each in candidates]
    return _table(REQUESTS, rows, WIDTHS)


def footprint(result: Footprint) -> str:
    """Megabytes by process, their sum, and the seconds of both starts."""
    rows: list[Cells] = [(f"  {name}", _number(size, 0)) for name, size in result.memory.items()]
    rows += [
        ("  memory (Pss), MB", _number(sum(result.memory.values()), 0)),
        ("  processor, % of a core", _number(100 * result.processor, 1)),
        ("  first start, s", _number(result.first_start, 1)),
        ("  second start, s", _number(result.second_start, 1)),
    ]
    return _table(("an idle instance", ""), rows, (30, 10))


def guard(found: Sequence[Figure]) -> str:
    """Ratios to the peer (above 1 is better), with their intervals and the committed figures."""
    rows: list[Cells] = [
        (
            f"  {each.operation}: {each.name}",
            _number(each.ratio, 2),
            f"{each.low:.2f} to {each.high:.2f}",
            _number(each.committed, 2),
            each.verdict,
        )
        for each in found
    ]
    return _table((f"of {PEER}", "ratio", "95 %", "committed", ""), rows, (44, 8, 16, 11, 22))


def _request(each: AnyCandidate, peer: AnyCandidate, floor: AnyCandidate) -> Cells:
    return (
        f"  {each.name}",
        _number(each.median("rate"), 0),
        *(_number(each.median(name), 2) for name in ("p50", "p95", "p99")),
        "" if each is floor else _number(ratio(each, peer), 2),
        _number(ratio(each, floor), 2),
        *(_number(each.median(name), 0) for name in ("server_us", "client_us")),
    )


def deliveries(candidates: Sequence[AnyCandidate], count: int) -> str:
    """Medians and ratios, as in `requests`, of rounds with `count` messages."""
    loops = [each for each in candidates if each.name in (BARE_LOOP, URLLIB3_LOOP)]
    rows = [_delivery(each, loops) for each in candidates]
    title = f"deliver {count:,} messages to one endpoint"
    return _table(DELIVERIES, [("",), (title,), *rows], DELIVERY_WIDTHS)


def _delivery(each: AnyCandidate, loops: Sequence[AnyCandidate]) -> Cells:
    ratios = (_number(ratio(each, loop), 2) for loop in loops)
    figures = (_number(each.median(name), 0) for name in ("sender_us", "postgres_us", "receiver_us"))
    return f"  {each.name}", _number(each.median("rate"), 0), *ratios, *figures


def life(candidates: Sequence[Candidate[float, LifeRound]]) -> str:
    """Medians of the rounds, and the latencies of all requests of all rounds."""
    ours, floor = candidates
    names = ("p50", "p95", "p99")
    times = ("web_us", "sender_us", "postgres_us", "others_us", "client_us")
    lives = [
        (
            f"  {each.name}",
            _number(each.median("rate"), 0),
            *(_number(each.median(name), 1) for name in names),
            _number(ratio(each, floor), 2),
            *(_number(each.median(name), 0) for name in times),
        )
        for each in candidates
    ]
    requests = [(f"  {name}", "", *_quantiles(found)) for name, found in _life_requests(ours).items()]
    return _table(LIVES, [("",), *lives, ("",), ("requests of a life",), *requests], LIFE_WIDTHS)


def _life_requests(ours: Candidate[float, LifeRound]) -> dict[str, list[float]]:
    names = ours.rounds[0].requests
    return {name: [each for round_ in ours.rounds for each in round_.requests[name]] for name in names}


def _quantiles(seconds: Sequence[float]) -> list[str]:
    return [_number(quantile(seconds, share), 1) for share in (0.5, 0.95, 0.99)]


def ratio(one: AnyCandidate, other: AnyCandidate) -> float:
    """The median ratio of the rates of two candidates."""
    pairs = zip(one.rounds, other.rounds, strict=True)
    return float(median(mine.rate / theirs.rate for mine, theirs in pairs))


def _table(headings: Cells, rows: Iterable[Cells], widths: Sequence[int]) -> str:
    return "\n".join([_line(headings, widths), "-" * sum(widths), *(_line(row, widths) for row in rows)])


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"


def _line(cells: Cells, widths: Sequence[int]) -> str:
    first, *others = cells
    text = first.ljust(widths[0]) if others else first
    return text + "".join(cell.rjust(width) for cell, width in zip(others, widths[1:], strict=False))


def machine() -> str:
    """The machine and the versions."""
    programs = f"Python {platform.python_version()}, PostgreSQL {full_version(find_programs())}"
    return f"{os.cpu_count()} processors ({_processor()}), {platform.system()}, {programs}"


def _processor() -> str:
    known = Path("/proc/cpuinfo")
    lines = known.read_text().splitlines() if known.exists() else []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.processor() or platform.machine())


def caption(
    *,
    connections: int,
    rounds: int,
    seconds: float,
    lives: int,
    life_seconds: float,
) -> str:
    return (
        f"{OURS} with the limit of requests raised and separate workers. {rounds} rounds of each in "
        f"turn, medians; requests: {connections} connections, {seconds:g} s a round; lives: {lives} at once, "
        f"{life_seconds:g} s a round.\n"
        f"{machine()}"
    )
