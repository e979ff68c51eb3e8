"""The tables of the results."""

import os
import platform
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any

from bench.comparison import BASELINE, OURS, PEER, Candidate
from bench.deliveries import BARE_LOOP, BESIDE_SLOW, URLLIB3_LOOP, WITHOUT_SLOW, DeliveryLatencies
from bench.footprint import Footprint
from bench.guard import Figure
from bench.life import LifeRound
from bench.lives import quantile
from bench.log_cost import LogCost
from bench.soak import Growth, Minute, Soak
from config.devstack.postgres_programs import find_programs, full_version

Cells = Sequence[str]
AnyCandidate = Candidate[Any, Any]
WIDTHS = (28, 11, 8, 8, 8, 8, 8, 11, 11)
REQUESTS = ("", "per second", "p50 ms", "p95 ms", "p99 ms", "of (a)", "of (b)", "server us", "client us")
DELIVERY_WIDTHS = (28, 11, 8, 8, 11, 13, 13)
DELIVERIES = ("", "per second", "of (c)", "of (d)", "sender us", "postgres us", "receiver us")
LATENCY_WIDTHS = (28, 10, 8, 8, 8, 9, 7, 9)
LATENCIES = ("", "messages", "p50 ms", "p95 ms", "p99 ms", "most ms", "times", "late ms")

LIFE_WIDTHS = (28, 11, 8, 8, 8, 8, 9, 11, 13, 11, 11)
LIVES = (
    "whole lives", "per second", "p50 ms", "p95 ms", "p99 ms", "of (b)", "web us", "sender us", "postgres us",
    "others us", "client us",
)  # fmt: skip

SOAK_WIDTHS, MEMORY_WIDTH = (22, 11, 9, 9, 9, 9, 9), 10
SOAK = ("soak: minute", "per second", *("p50 ms", "p99 ms") * 2, "late ms")
SIZES = ("all_bytes", "row_bytes", "index_bytes")


def requests(results: Mapping[str, Sequence[AnyCandidate]]) -> str:
    """Medians of the rounds. A ratio is the median of the ratios of the rounds."""
    rows: list[Cells] = []
    for operation, candidates in results.items():
        by_name = {each.name: each for each in candidates}
        rows += [("",), (operation,)]
        rows += [_request(each, by_name[PEER], by_name[BASELINE]) for each in candidates]
    return _table(REQUESTS, rows, WIDTHS)


def others(candidates: Sequence[AnyCandidate]) -> str:
    """Medians of the rounds of requests without a peer."""
    rows = [
        (
            f"  {each.name}",
            _number(each.median("rate"), 0),
            *(_number(each.median(name), 2) for name in ("p50", "p95", "p99")),
            _number(each.median("server_us"), 0),
        )
        for each in candidates
    ]
    headings = ("other requests", "per second", "p50 ms", "p95 ms", "p99 ms", "server us")
    return _table(headings, rows, (44, 11, 8, 8, 8, 11))


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


def log_cost(result: LogCost) -> str:
    """Processor time of a code, and the part of the request log."""
    low, middle, high = result.log
    rows: list[Cells] = [
        ("  make a code, us", _number(result.code, 0)),
        ("  of it the log, us", _number(middle, 1)),
        ("    a quarter of the turns below", _number(low, 1)),
        ("    a quarter of the turns above", _number(high, 1)),
        ("  of it the log, %", _number(100 * result.share, 1)),
    ]
    return _table(("the request log", ""), rows, (40, 10))


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


def latencies(results: dict[str, DeliveryLatencies]) -> str:
    """`times` is the ratio of the p95 with and without the slow endpoint."""
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


def soak(result: Soak) -> str:
    """The minutes and the growth of memory, then what each payment leaves in the database."""
    groups = list(result.minutes[0].memory)
    widths = (*SOAK_WIDTHS, *(MEMORY_WIDTH for _ in groups))
    trends = (f"{result.megabytes_per_hour(group):+,.1f}" for group in groups)
    rows: list[Cells] = [
        ("",),
        (f"{result.rate:.1f} lives a second, a third of the most, which is {result.most:.0f}",),
        *(_minute(str(number), each) for number, each in enumerate(result.minutes, 1)),
        _minute("all", result.whole)[: len(SOAK)],
        ("  growth, MB an hour", *[""] * (len(SOAK) - 1), *trends),
    ]
    above = _line(("", "", "requests", "", "webhooks", "", "", "MB (Pss)"), widths)
    return f"{above}\n{_table((*SOAK, *groups), rows, widths)}\n\n{_growth(result.growth)}"


def _minute(name: str, minute: Minute) -> Cells:
    found = minute.result
    times = (found.all_requests, found.webhooks)
    return (
        f"  {name}",
        _number(found.rate, 1),
        *(_number(quantile(each, share), 1) for each in times for share in (0.5, 0.99)),
        _number(quantile(found.late, 0.99), 1),
        *(_number(size, 1) for size in minute.memory.values()),
    )


def _growth(growth: Growth) -> str:
    """Bytes for each payment: of the log, of all tables, and of those that grew most."""
    totals = (_number(sum(getattr(each, name) for each in growth.tables), 0) for name in SIZES)
    rows: list[Cells] = [
        ("  log (WAL)", _number(growth.wal_bytes, 0)),
        ("  of it whole pages after checkpoints, at most", _number(growth.full_page_bytes, 0)),
        ("  all tables", *totals),
    ]
    for each in growth.largest:
        sizes = (_number(getattr(each, name), 0) for name in SIZES)
        rows.append((f"  {each.name}", *sizes, _number(each.dead_rows, 0)))
    return _table(("bytes a payment", "all", "rows", "indexes", "dead rows"), rows, (48, 10, 10, 10, 11))


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
    latency_seconds: int,
    backlog: int,
) -> str:
    return (
        f"{OURS} with the limit of requests raised and separate workers. {rounds} rounds of each in "
        f"turn, medians; requests: {connections} connections, {seconds:g} s a round; lives: {lives} at once, "
        f"{life_seconds:g} s a round.\nLatencies once, {latency_seconds} s each; the slow endpoint takes "
        f"10 s an answer and is {backlog:,} behind.\n"
        f"{machine()}"
    )
