"""`GET /v1/transactions` with a short and a long history, of two merchants of one instance, in turn."""

import itertools
import json
import statistics
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from urllib.parse import urlencode

import psycopg

from bench import load
from bench.comparison import NotMeasurable
from core import ids
from core.clock import iso
from tests.stack import Stack

SHORT_ROWS = 10_000
LONG_ROWS = 200_000
# Ten million rows are most of a year.
STEP = timedelta(seconds=3)
NEWEST = datetime(2026, 11, 20, 12, 34, 56, 789000, UTC)
BATCH = 500_000
FAR_SHARE = 0.9
TABLES = ("transactions_transaction", "transactions_transactioncount", "transactions_countdelta")
WIDTHS = (30, 12, 9, 9, 12, 9, 9, 8)
SHARES = {"succeeded": 0.93, "pending": 0.002, "refund": 0.08, "refunded": 0.02}
WRITE = """
INSERT INTO transactions_transaction
    (id, merchant_id, payment_id, refund_id, type, status, amount, currency, created_at)
SELECT 'txn_' || tail, %(merchant)s, 'pay_' || tail, CASE type WHEN 'refund' THEN 'ref_' || tail END,
    type, status, CASE type WHEN 'refund' THEN -150000 ELSE 150000 END, 'THB',
    %(newest)s::timestamptz - n * %(step)s::interval
FROM generate_series(%(last)s::bigint - 1, %(first)s::bigint, -1) AS n,
LATERAL (
    SELECT %(run)s || lpad(n::text, 21, '0'),
        CASE WHEN n %% 25 IN (0, 12) THEN 'refund' WHEN n %% 20 = 1 THEN 'failed' ELSE 'payment' END,
        CASE WHEN n %% 500 = 0 THEN 'pending' WHEN n %% 25 IN (0, 12) THEN 'succeeded'
             WHEN n %% 20 = 1 THEN 'failed' WHEN n %% 50 = 2 THEN 'refunded' ELSE 'succeeded' END
) AS row (tail, type, status)
"""
COUNT = """
SELECT count(*) FROM transactions_transaction
WHERE merchant_id = %s AND type = coalesce(%s, type) AND status = coalesce(%s, status)
    AND created_at BETWEEN %s AND %s
"""


@dataclass
class MerchantHistory:
    """A merchant with its number of rows, and the latencies of each query in milliseconds."""

    rows: int
    merchant_id: str
    secret_key: str
    latencies: dict[str, list[float]] = field(default_factory=dict)

    def questions(self) -> Iterator[tuple[str, dict[str, str]]]:
        """Names and queries: a page of 20 with the total, the total with one row, a page at the end."""
        for name, query in self.filters():
            yield name, query
            yield f"{name}, total alone", {**query, "limit": "1"}
        for name, query in self.filters():
            matching = 0.5 if "start_date" in query else 1
            matching *= SHARES.get(query.get("status", query.get("type", "")), 1)
            yield f"{name}, 90 % on", {**query, "offset": str(round(FAR_SHARE * matching * self.rows))}

    def filters(self) -> Iterator[tuple[str, dict[str, str]]]:
        """The dates select the middle half, and start and end within a minute."""
        start, end = (iso(NEWEST - STEP * round(self.rows * share)) for share in (0.75, 0.25))
        dates = {"start_date": start, "end_date": end}
        yield "all", {}
        yield "most by status", {"status": "succeeded"}
        yield "few by status", {"status": "pending"}
        yield "by type", {"type": "refund"}
        yield "by dates", dates
        yield "by all three", {"type": "payment", "status": "refunded", **dates}

    def path(self, query: dict[str, str]) -> str:
        return f"/Thai/v1/transactions?{urlencode(query)}"

    def request(self, query: dict[str, str]) -> bytes:
        head = f"Host: 127.0.0.1\r\nAuthorization: Bearer {self.secret_key}\r\n\r\n"
        return f"GET {self.path(query)} HTTP/1.1\r\n{head}".encode()


def measure(stack: Stack, *, rows: int, rounds: int, seconds: float) -> str:
    """Write both histories and query them in turn; return the table. Raises NotMeasurable."""
    short, long = (_write(stack, count) for count in (SHORT_ROWS, rows))
    for history in (short, long):
        _check_totals(stack, history)
    for _ in range(rounds):
        for questions in zip(short.questions(), long.questions(), strict=True):
            for history, question in zip((short, long), questions, strict=True):
                _ask(stack.port, history, *question, seconds)
    return table(short, long)


def table(short: MerchantHistory, long: MerchantHistory) -> str:
    """Medians and 95th percentiles of all rounds. `times` is the ratio of the medians."""
    title = "page and total of the history"
    sizes = (f"{short.rows:,} rows", "p50 ms", "p95 ms", f"{long.rows:,}", "p50 ms", "p95 ms", "times")
    lines = [_line("", *sizes), "-" * sum(WIDTHS), "", title]
    for name, before in short.latencies.items():
        after = long.latencies[name]
        ratio = statistics.median(after) / statistics.median(before)
        lines.append(_line(f"  {name}", "", *_figures(before), "", *_figures(after), f"{ratio:.2f}"))
    return "\n".join(lines)


def _write(stack: Stack, rows: int) -> MerchantHistory:
    """Create a merchant and insert its history with all triggers; the counts are rolled up at once."""
    made = json.loads(stack.manage("create_merchant", "--name", f"{rows:,}", "--mode", "test", "--json"))
    result = {"run": ids.random_text(6), "merchant": made["merchant_id"], "newest": NEWEST, "step": STEP}
    started = time.monotonic()
    with psycopg.connect(stack.env["DATABASE_URL"], autocommit=True) as connection:
        for last in range(rows, 0, -BATCH):
            first = max(0, last - BATCH)
            connection.execute(WRITE, {**result, "last": last, "first": first})
            connection.execute("DELETE FROM transactions_countdelta")
            _tell(f"{rows - first:,} of {rows:,} rows after {time.monotonic() - started:.0f} s")
        # Autovacuum does this within a minute or two.
        connection.execute(f"VACUUM (ANALYZE) {', '.join(TABLES)}")
    return MerchantHistory(rows, made["merchant_id"], made["secret_key"])


def _check_totals(stack: Stack, history: MerchantHistory) -> None:
    """Check that each total equals a plain count. Raises NotMeasurable."""
    with psycopg.connect(stack.env["DATABASE_URL"]) as connection:
        for name, query in history.filters():
            requested = [history.merchant_id, *(query.get(each) for each in ("type", "status"))]
            dates = [query.get("start_date", "-infinity"), query.get("end_date", "infinity")]
            counted = connection.execute(COUNT, [*requested, *dates]).fetchone()
            request = urllib.request.Request(f"{stack.base_url}{history.path(query)}")
            request.add_header("Authorization", f"Bearer {history.secret_key}")
            with urllib.request.urlopen(request, timeout=30) as response:
                total = json.load(response)["total"]
            if counted != (total,):
                raise NotMeasurable(f"{name}: the total is {total}, counted are {counted}")


def _ask(port: int, history: MerchantHistory, name: str, query: dict[str, str], seconds: float) -> None:
    result = load.run(port, itertools.repeat(history.request(query)), connections=1, seconds=seconds)
    if set(result.statuses) != {200}:
        raise NotMeasurable(f"{name}: {dict(result.statuses)}, first {result.first_refusal!r}")
    history.latencies.setdefault(name, []).extend(1000 * each for each in result.latencies)


def _figures(latencies: list[float]) -> tuple[str, str]:
    ordered = sorted(latencies)
    return f"{statistics.median(ordered):.2f}", f"{ordered[int(0.95 * len(ordered))]:.2f}"


def _line(*cells: str) -> str:
    first, *others = cells
    return first.ljust(WIDTHS[0]) + "".join(
        cell.rjust(width) for cell, width in zip(others, WIDTHS[1:], strict=True)
    )


def _tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
