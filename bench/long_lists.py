"""Lists with few and with many rows, of two merchants of one instance, in turn."""

import itertools
import json
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from statistics import median
from typing import Any
from urllib.parse import urlencode

import psycopg

from bench import http
from bench.http import NotMeasurable, Request, load
from bench.lists import LISTS, MeasuredList
from bench.rounds import log, quantiles, table
from bench.stack import DetachedStack, wait_until
from core import ids
from core.clock import iso

SHORT_ROWS, LONG_ROWS = 10_000, 200_000
ROUNDS, SECONDS = 3, 0.3
FAR_SHARE, PAGE_ROWS = 0.9, 20
NEWEST, STEP, BATCH = datetime(2026, 11, 20, 12, 34, 56, 789000, UTC), timedelta(seconds=3), 500_000
COUNTED_SECONDS = 3600.0
# The row that a search by id finds.
SOUGHT = 5_000
Connection = psycopg.Connection[Any]


def measure(stack: DetachedStack, rows: int) -> str:
    """Measure each list with few and with many rows; return the tables. Raises NotMeasurable."""
    with psycopg.connect(stack.owner_url, autocommit=True) as connection:
        # Without other triggers, and without checks of foreign keys.
        connection.execute("SET session_replication_role = replica")
        runs = {count: ids.random_text(6) for count in (SHORT_ROWS, rows)}
        return "\n\n".join(_measure(stack, connection, each, runs) for each in LISTS)


def _measure(
    stack: DetachedStack, connection: Connection, measured: MeasuredList, runs: Mapping[int, str]
) -> str:
    """Query both histories of a list in turn; return the table."""
    histories = [_History(stack, connection, measured, rows, run) for rows, run in runs.items()]
    answers: dict[str, tuple[list[float], list[float]]] = {}
    for _ in range(ROUNDS):
        for questions in zip(*(history.questions() for history in histories), strict=True):
            for place, (name, request) in enumerate(questions):
                repeated = itertools.repeat(request.to_bytes())
                latencies, _ = load(stack.port, repeated, connections=1, seconds=SECONDS)
                answers.setdefault(name, ([], []))[place].extend(latencies)
    rows: list[tuple[str | float, ...]] = []
    ratios = []
    for name, (short, long) in answers.items():
        few, many = (list(quantiles(seconds).values())[:2] for seconds in (short, long))
        ratios.append([late / early for early, late in zip(few, many, strict=True)])
        rows.append((name, *few, *many, *ratios[-1]))
    rows.append(("median of these", *[""] * 4, *(median(column) for column in zip(*ratios, strict=True))))
    headings = (f"{count:,} rows, {share} ms" for count in runs for share in ("p50", "p95"))
    return table([measured.name, *headings, "times", "p95"], rows)


class _History:
    """A merchant with its rows of a list."""

    def __init__(
        self, stack: DetachedStack, connection: Connection, measured: MeasuredList, rows: int, run: str
    ) -> None:
        """Write the rows, and compare the totals with plain counts. Raises NotMeasurable."""
        name = f"{measured.name} {rows:,}"
        merchant = json.loads(stack.manage("create_merchant", "--name", name, "--mode", "test", "--json"))
        self._list, self._run, self._port = measured, run, stack.port
        self._authorization = {"Authorization": f"Bearer {merchant['secret_key']}"}
        self._owner = merchant["merchant_id"]
        self._write(connection, rows)
        self._start, self._end = (NEWEST - STEP * round(rows * share) for share in (0.75, 0.25))
        # By filter: the query, and its pages far on by offset and by cursor.
        self._pages = {
            name: self._far_pages(connection, self._filled(query)) for name, query in measured.filters.items()
        }

    def questions(self) -> Iterator[tuple[str, Request]]:
        """Names and requests: a page of 20 with the total, the total with one row, pages near the end."""
        for name, (query, far) in self._pages.items():
            yield name, self._request(query)
            yield f"{name}, total alone", self._request({**query, "limit": "1"})
            for by, place in far.items():
                yield f"{name}, 90 % on by {by}", self._request({**query, **place})
        for name, search in self._list.searches.items():
            yield name, self._request(self._filled(search))

    def _write(self, connection: Connection, rows: int) -> None:
        """Write the rows with their counts. Without triggers and checks this takes a third of the time."""
        table_name = self._list.table
        connection.execute(f"ALTER TABLE {table_name} ENABLE ALWAYS TRIGGER count_inserted")
        for last in range(rows, 0, -BATCH):
            numbers = {"first": max(0, last - BATCH), "last": last, "newest": NEWEST, "step": STEP}
            connection.execute(self._list.write, {**numbers, "run": self._run, "owner": self._owner})
        wait_until(
            lambda: not connection.execute("SELECT FROM counts_countdelta LIMIT 1").rowcount, COUNTED_SECONDS
        )
        connection.execute(f"VACUUM (ANALYZE) {table_name}, counts_listcount, counts_countdelta")
        log(f"{self._list.name}: {rows:,} rows are written")

    def _filled(self, query: Mapping[str, str]) -> dict[str, str]:
        values = {"tail": f"{self._run}{SOUGHT:021}", "start": iso(self._start), "end": iso(self._end)}
        return {key: value.format(**values) for key, value in query.items()}

    def _far_pages(
        self, connection: Connection, query: dict[str, str]
    ) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
        """The query, and what leads to its last full page after 90 of 100 rows. Raises NotMeasurable."""
        conditions, values = ["merchant_id = %s"], [self._owner]
        for name, value in query.items():
            compared = {"start_date": "created_at >= %s", "end_date": "created_at <= %s"}.get(name)
            conditions.append(compared or f"{self._list.columns.get(name, name)} = %s")
            values.append(value)
        rows = f"FROM {self._list.table} WHERE {' AND '.join(conditions)}"
        (matching,) = connection.execute(f"SELECT count(*) {rows}", values).fetchone() or (0,)
        total = http.ask(self._port, self._request(query))["total"]
        if total != matching:
            raise NotMeasurable(f"{self._list.name} {query}: the total is {total}, counted are {matching}")
        if matching < 2:
            return query, {}
        far = max(1, min(round(FAR_SHARE * matching), matching - PAGE_ROWS))
        ordered = f"SELECT id {rows} ORDER BY created_at DESC, id DESC OFFSET {far - 1} LIMIT 1"
        (before,) = connection.execute(ordered, values).fetchone() or ("",)
        return query, {"offset": {"offset": str(far)}, "cursor": {"after": before}}

    def _request(self, query: Mapping[str, str]) -> Request:
        return Request("GET", f"/Thai/v1/{self._list.name}?{urlencode(query)}", self._authorization)
