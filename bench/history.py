"""Lists with few and with many rows, of two merchants of one instance, in turn."""

import json
import shutil
import statistics
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import urlencode

import psycopg

from bench import bulk
from bench.lists import LISTS, MeasuredList
from bench.load import NotMeasurable
from bench.questions import Answers, Measured, Questioner
from core import ids
from core.clock import iso
from tests.stack import Stack

SHORT_ROWS = 10_000
LONG_ROWS = 200_000
FAR_SHARE, PAGE_ROWS = 0.9, 20
# All lists together, with their indexes and the write-ahead log.
BYTES_A_ROW, GB = 6_500, 1e9
WIDTHS = (38, 12, 9, 9, 9, 13, 9, 9, 9, 8, 8)
# Filters that find one row.
ONE_ROW = {"reference", "qr_code_id", "payment_id"}
ENDPOINT = """
    INSERT INTO webhooks_endpoint
        (id, merchant_id, url, events, secret_sealed, status, disabled_reason, created_at, updated_at)
    VALUES (%s, %s, 'https://shop.example', '{}', '', 'active', '', %s, %s)
"""


@dataclass
class MerchantHistory:
    """A merchant with its number of rows of a list, and the answers to each query."""

    list: MeasuredList
    rows: int
    run: str
    secret_key: str
    merchant_id: str
    owner: str
    answers: Measured = field(default_factory=dict)

    def questions(self) -> Iterator[tuple[str, str]]:
        """Names and paths of pages and of searches."""
        for name, query in self._pages():
            yield name, self.path(query)
        for name, (path, query) in self.list.searches.items():
            yield name, f"{path}?{urlencode(self._filled(query))}"

    def _pages(self) -> Iterator[tuple[str, dict[str, str]]]:
        """Names and queries: a page of 20 with the total, the total with one row, pages near the end."""
        for name, query in self.filters():
            yield name, query
            yield f"{name}, total alone", {**query, "limit": "1"}
        for name, query in self.filters():
            if not ONE_ROW.intersection(query):
                yield f"{name}, 90 % on", {**query, "offset": str(self._far(self._matching(query)))}
        for name, query in self.filters():
            if not (ONE_ROW | {"start_date"}).intersection(query):
                matching = self._matching(query)
                number = round(self.rows * self._far(matching) / matching)
                far = f"{self.list.prefix}{bulk.tail(self.run, number)}"
                yield f"{name}, 90 % on by cursor", {**query, "after": far}

    def filters(self) -> Iterator[tuple[str, dict[str, str]]]:
        """The dates select the middle half, and start and end within a minute."""
        start, end = (iso(bulk.NEWEST - bulk.STEP * round(self.rows * share)) for share in (0.75, 0.25))
        for name, query in self.list.filters.items():
            dates = {"start_date": start, "end_date": end} if "dates" in query else {}
            given = {key: value for key, value in query.items() if key != "dates"}
            yield name, self._filled(given) | dates

    def _filled(self, query: dict[str, str]) -> dict[str, str]:
        return {key: value.format(tail=bulk.tail(self.run)) for key, value in query.items()}

    def path(self, query: dict[str, str]) -> str:
        path = self.list.path or f"/Thai/v1/{self.list.name}"
        return f"{path.format(owner=self.owner)}?{urlencode(query)}"

    def request(self, path: str) -> bytes:
        head = f"Host: 127.0.0.1\r\nAuthorization: Bearer {self.secret_key}\r\n\r\n"
        return f"GET {path} HTTP/1.1\r\n{head}".encode()

    def _far(self, matching: float) -> int:
        """How many rows are skipped. The page is full, so that pages of both lists have as many rows."""
        return max(0, min(round(FAR_SHARE * matching), round(matching) - PAGE_ROWS))

    def _matching(self, query: dict[str, str]) -> float:
        """About how many rows match."""
        matching = self.rows / (2 if "start_date" in query else 1)
        for value in query.values():
            matching *= self.list.shares.get(value, 1)
        return matching


def measure(stack: Stack, *, rows: int, rounds: int, seconds: float) -> str:
    """Measure each list with few and with many rows; return the tables.

    Raises NotMeasurable.
    """
    _check_space(stack, rows)
    questioner = Questioner(stack)
    runs = {count: ids.random_text(6) for count in (SHORT_ROWS, rows)}
    tables = []
    for each in LISTS:
        short, long = (_write(stack, each, count, runs[count]) for count in (SHORT_ROWS, rows))
        tables.append(_measure(stack, questioner, short, long, rounds, seconds))
        bulk.tell(tables[-1])
    return "\n\n".join(tables)


def _check_space(stack: Stack, rows: int) -> None:
    """Raises NotMeasurable if the disk is too small for so many rows of each list."""
    needed, free = BYTES_A_ROW * rows, shutil.disk_usage(stack.folder).free
    if free < needed:
        raise NotMeasurable(
            f"{rows:,} rows of each list need {needed / GB:.0f} GB, {free / GB:.0f} are free."
        )


def _measure(
    stack: Stack,
    questioner: Questioner,
    short: MerchantHistory,
    long: MerchantHistory,
    rounds: int,
    seconds: float,
) -> str:
    """Query both histories of a list in turn; return the table."""
    for history in (short, long):
        _check_totals(stack, history)
    for _ in range(rounds):
        for pair in zip(short.questions(), long.questions(), strict=True):
            for history, (name, path) in zip((short, long), pair, strict=True):
                questioner.ask(history.answers, name, history.request(path), seconds)
    return table(f"page and total of {short.list.name}", short.answers, long.answers, long.rows)


def table(title: str, short: Measured, long: Measured, rows: int) -> str:
    """Medians, 95th percentiles and blocks of all rounds, and the ratios of the times."""
    figures = ("p50 ms", "p95 ms", "blocks")
    lines = [_line("", f"{SHORT_ROWS:,} rows", *figures, f"{rows:,}", *figures, "times", "p95")]
    lines += ["-" * sum(WIDTHS), "", title]
    ratios: list[tuple[float, float]] = []
    for name, before in short.items():
        few, many = _figures(before), _figures(long[name])
        ratios.append((many[0] / few[0], many[1] / few[1]))
        cells = ([f"{p50:.2f}", f"{p95:.2f}", f"{blocks:,.0f}"] for p50, p95, blocks in (few, many))
        lines.append(
            _line(f"  {name}", "", *next(cells), "", *next(cells), *map("{:.2f}".format, ratios[-1]))
        )
    medians = (f"{statistics.median(each):.2f}" for each in zip(*ratios, strict=True))
    lines.append(_line("  median of these", *[""] * 8, *medians))
    return "\n".join(lines)


def _write(stack: Stack, measured: MeasuredList, rows: int, run: str) -> MerchantHistory:
    """Create a merchant, and insert and count its rows without triggers, which takes a third of the time."""
    name = f"{measured.name} {rows:,}"
    made = json.loads(stack.manage("create_merchant", "--name", name, "--mode", "test", "--json"))
    merchant_id = made["merchant_id"]
    history = MerchantHistory(measured, rows, run, made["secret_key"], merchant_id, owner=merchant_id)
    with bulk.connect(stack.owner_url) as connection, bulk.workers_paused(stack, connection):
        if measured.owner == "endpoint_id":
            history.owner = ids.new("wh_", bulk.NEWEST)
            connection.execute(ENDPOINT, [history.owner, merchant_id, bulk.NEWEST, bulk.NEWEST])
        statement = bulk.counted_write(measured.name, measured.write, measured.kind)
        with bulk.unindexed(connection, measured.table, rows):
            bulk.fill(connection, statement, rows, run, what=name, list=measured.name, owner=history.owner)
        if measured.with_rows is not None:
            table, write = measured.with_rows
            with bulk.unindexed(connection, table, rows):
                bulk.fill(connection, write, rows, run, what=table, owner=history.owner)
            connection.execute(f"VACUUM (ANALYZE) {table}")
        # Autovacuum does this within a minute or two.
        connection.execute(f"VACUUM (ANALYZE) {measured.table}, counts_listcount, counts_countdelta")
    return history


def _check_totals(stack: Stack, history: MerchantHistory) -> None:
    """Check that each total equals a plain count. Raises NotMeasurable."""
    count = f"""SELECT count(*) FROM {history.list.table} WHERE {history.list.owner} = %(owner)s
        AND {history.list.counted} AND created_at BETWEEN %(start_date)s AND %(end_date)s"""
    unfiltered = dict.fromkeys(("type", "status", "event", "state", *ONE_ROW), None)
    always = {"start_date": "-infinity", "end_date": "infinity"}
    with psycopg.connect(stack.owner_url) as connection:
        for name, query in history.filters():
            asked = {"owner": history.owner, **unfiltered, **always, **query}
            counted = connection.execute(count, asked).fetchone()
            request = urllib.request.Request(f"{stack.base_url}{history.path(query)}")
            request.add_header("Authorization", f"Bearer {history.secret_key}")
            with urllib.request.urlopen(request, timeout=30) as response:
                total = json.load(response)["total"]
            if counted != (total,):
                raise NotMeasurable(f"{name}: the total is {total}, counted are {counted}")


def _figures(answers: Answers) -> tuple[float, float, float]:
    """Median and 95th percentile of the latencies, and the blocks."""
    ordered = sorted(answers.latencies)
    return statistics.median(ordered), ordered[int(0.95 * len(ordered))], statistics.median(answers.blocks)


def _line(*cells: str) -> str:
    first, *others = cells
    return first.ljust(WIDTHS[0]) + "".join(
        cell.rjust(width) for cell, width in zip(others, WIDTHS[1:], strict=True)
    )
