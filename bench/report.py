"""The tables of a run."""

import os
import platform
from collections.abc import Iterable, Sequence
from pathlib import Path

from bench.comparison import BASELINE, OURS, PEER, Candidate
from bench.deliveries import BARE_LOOP, BESIDE_SLOW, WITHOUT_SLOW, DeliveryLatencies
from config.devstack.postgres_programs import find_programs, full_version

Cells = Sequence[str]
WIDTHS = (28, 11, 8, 8, 8, 8, 8, 11, 11)
REQUESTS = ("", "per second", "p50 ms", "p95 ms", "p99 ms", "of (a)", "of (b)", "server us", "client us")
DELIVERY_WIDTHS = (28, 11, 8, 11, 13, 13)
DELIVERIES = ("", "per second", "of (c)", "sender us", "postgres us", "receiver us")
LATENCY_WIDTHS = (28, 10, 8, 8, 8, 9, 7, 9)
LATENCIES = ("", "messages", "p50 ms", "p95 ms", "p99 ms", "most ms", "times", "late ms")


def requests(results: dict[str, Sequence[Candidate]]) -> str:
    """Medians of the rounds; a ratio is the median of the rounds' ratios, so that a busy moment cancels."""
    rows: list[Cells] = []
    for operation, candidates in results.items():
        by_name = {each.name: each for each in candidates}
        rows += [("",), (operation,)]
        rows += [_request(each, by_name.get(PEER), by_name.get(BASELINE)) for each in candidates]
    return _table(REQUESTS, rows, WIDTHS)


def _request(each: Candidate, peer: Candidate, floor: Candidate) -> Cells:
    return (
        f"  {each.name}",
        _number(each.median("rate"), 0),
        *(_number(each.median(name), 2) for name in ("middle", "p95", "p99")),
        "" if each is floor else _number(ratio(each, peer), 2),
        _number(ratio(each, floor), 2),
        *(_number(each.median(name), 0) for name in ("server_us", "client_us")),
    )


def deliveries(candidates: Sequence[Candidate], count: int) -> str:
    """Medians and ratios as in `requests`, of rounds of `count` messages."""
    baseline = next(each for each in candidates if each.name == BARE_LOOP)
    rows = [_delivery(each, baseline) for each in candidates]
    title = f"deliver {count:,} messages to one endpoint"
    return _table(DELIVERIES, [("",), (title,), *rows], DELIVERY_WIDTHS)


def _delivery(each: Candidate, baseline: Candidate) -> Cells:
    figures = (_number(each.median(name), 0) for name in ("sender_us", "postgres_us", "receiver_us"))
    return f"  {each.name}", _number(each.median("rate"), 0), _number(ratio(each, baseline), 2), *figures


def latencies(results: dict[str, DeliveryLatencies]) -> str:
    """`times` is the p95 beside the slow endpoint over that without it."""
    rows = [_latency(name, result, results.get(WITHOUT_SLOW)) for name, result in results.items()]
    return _table(LATENCIES, [("",), ("from commit to receipt",), *rows], LATENCY_WIDTHS)


def _latency(name: str, result: DeliveryLatencies, alone: DeliveryLatencies | None) -> Cells:
    return (
        f"  {name}",
        _number(len(result.latencies), 0),
        *(_number(result.quantile(share), 1) for share in (0.5, 0.95, 0.99, 1)),
        _number(result.quantile(0.95) / alone.quantile(0.95), 2) if name == BESIDE_SLOW and alone else "",
        _number(result.publish_delay_ms, 1),
    )


def ratio(one: Candidate, other: Candidate) -> float:
    """How much of the other's rate one reaches, round by round."""
    pairs = zip(one.rounds, other.rounds, strict=True)
    ordered = sorted(mine.rate / theirs.rate for mine, theirs in pairs)
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def _table(headings: Cells, rows: Iterable[Cells], widths: Sequence[int]) -> str:
    return "\n".join([_line(headings, widths), "-" * sum(widths), *(_line(row, widths) for row in rows)])


def _number(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"


def _line(cells: Cells, widths: Sequence[int]) -> str:
    first, *others = cells
    text = first.ljust(widths[0]) if others else first
    return text + "".join(cell.rjust(width) for cell, width in zip(others, widths[1:], strict=False))


def machine() -> str:
    """What it ran on, for whoever compares two tables."""
    programs = f"Python {platform.python_version()}, PostgreSQL {full_version(find_programs())}"
    return f"{os.cpu_count()} processors ({_processor()}), {platform.system()}, {programs}"


def _processor() -> str:
    known = Path("/proc/cpuinfo")
    lines = known.read_text().splitlines() if known.exists() else []
    models = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(models, platform.processor() or platform.machine())


def caption(*, connections: int, rounds: int, seconds: float, latency_seconds: int, backlog: int) -> str:
    return (
        f"{OURS} with its default settings and the limiter's ceiling raised. {rounds} rounds of each in "
        f"turn, medians; requests: {connections} connections, {seconds:g} s a round. Latencies once, "
        f"{latency_seconds} s each;\nthe slow endpoint takes 10 s an answer and is {backlog:,} behind.\n"
        f"{machine()}"
    )
