"""Lists with few and with many rows, of two merchants of one instance, in turn."""

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
Latencies = list[float]
# Ten million rows are most of a year.
STEP = timedelta(seconds=3)
NEWEST = datetime(2026, 11, 20, 12, 34, 56, 789000, UTC)
BATCH = 500_000
FAR_SHARE = 0.9
WIDTHS = (38, 12, 9, 9, 12, 9, 9, 8)
# A row `n` is the n-th newest and has an id that ends in `tail`.
ROWS = """
FROM generate_series(%(last)s::bigint - 1, %(first)s::bigint, -1) AS n,
LATERAL (
    SELECT %(run)s || lpad(n::text, 21, '0'), %(newest)s::timestamptz - n * %(step)s::interval
) AS row (tail, at),
"""


@dataclass(frozen=True)
class MeasuredList:
    """A list of the API: how its rows are written, its filters, and the share of rows that match a value.

    `counted` is the condition of a plain count, with the filters as parameters.
    """

    name: str
    table: str
    prefix: str
    write: str
    counted: str
    filters: dict[str, dict[str, str]]
    shares: dict[str, float]


TRANSACTIONS = MeasuredList(
    "transactions",
    "transactions_transaction",
    "txn_",
    f"""
    INSERT INTO transactions_transaction
        (id, merchant_id, payment_id, refund_id, type, status, amount, currency, created_at)
    SELECT 'txn_' || tail, %(merchant)s, 'pay_' || tail, CASE type WHEN 'refund' THEN 'ref_' || tail END,
        type, status, CASE type WHEN 'refund' THEN -150000 ELSE 150000 END, 'THB', at
    {ROWS} LATERAL (
        SELECT CASE WHEN n %% 25 IN (0, 12) THEN 'refund' WHEN n %% 20 = 1 THEN 'failed' ELSE 'payment' END,
            CASE WHEN n %% 500 = 0 THEN 'pending' WHEN n %% 25 IN (0, 12) THEN 'succeeded'
                 WHEN n %% 20 = 1 THEN 'failed' WHEN n %% 50 = 2 THEN 'refunded' ELSE 'succeeded' END
    ) AS kind (type, status)
    """,
    "type = coalesce(%(type)s, type) AND status = coalesce(%(status)s, status)",
    {
        "all": {},
        "most by status": {"status": "succeeded"},
        "few by status": {"status": "pending"},
        "by type": {"type": "refund"},
        "by dates": {"dates": "middle"},
        "by all three": {"type": "payment", "status": "refunded", "dates": "middle"},
    },
    {"succeeded": 0.93, "pending": 0.002, "refund": 0.08, "refunded": 0.02},
)
# The instance expires the overdue ones meanwhile. Their number by the clock stays the same.
PAYMENTS = MeasuredList(
    "payments",
    "payments_payment",
    "pay_",
    f"""
    INSERT INTO payments_payment
        (id, merchant_id, qr_code_id, status, amount, currency, reference, payer_differs, amount_refunded,
         amount_refunding, created_at, updated_at, expires_at, completed_at)
    SELECT 'pay_' || tail, %(merchant)s, 'qr_' || tail, status, 150000, 'THB', 'order ' || n, false, 0, 0,
        at, at, CASE WHEN n %% 500 = 1 THEN at + interval '10 years' ELSE at + interval '15 min' END,
        CASE status WHEN 'succeeded' THEN at END
    {ROWS} LATERAL (
        SELECT CASE WHEN n %% 500 < 2 THEN 'pending' WHEN n %% 20 = 3 THEN 'failed' ELSE 'succeeded' END
    ) AS kind (status)
    """,
    """%(type)s::text IS NULL AND coalesce(%(status)s, status) = CASE
        WHEN status = 'pending' AND expires_at <= now() THEN 'expired' ELSE status END""",
    {
        "all": {},
        "most by status": {"status": "succeeded"},
        "few by status": {"status": "pending"},
        "expired by clock": {"status": "expired"},
        "by dates": {"dates": "middle"},
        "by status and dates": {"status": "failed", "dates": "middle"},
    },
    {"succeeded": 0.946, "failed": 0.05, "pending": 0.002, "expired": 0.002},
)
EVENTS = MeasuredList(
    "events",
    "webhooks_event",
    "evt_",
    f"""
    INSERT INTO webhooks_event (id, merchant_id, type, subject_id, body, created_at)
    SELECT 'evt_' || tail, %(merchant)s, type, 'pay_' || tail, convert_to(json_build_object(
            'event', type, 'event_id', 'evt_' || tail, 'data', json_build_object('note', repeat('x', 300)),
            'timestamp', '2026-11-21T03:05:42.310Z')::text, 'UTF8'), at
    {ROWS} LATERAL (
        SELECT CASE WHEN n %% 500 = 0 THEN 'refund.completed' WHEN n %% 2 = 0 THEN 'payment.succeeded'
            ELSE 'payment.pending' END
    ) AS kind (type)
    """,
    "type = coalesce(%(event)s, type)",
    {
        "all": {},
        "most by type": {"event": "payment.pending"},
        "few by type": {"event": "refund.completed"},
        "by dates": {"dates": "middle"},
        "by type and dates": {"event": "payment.succeeded", "dates": "middle"},
    },
    {"payment.pending": 0.5, "payment.succeeded": 0.498, "refund.completed": 0.002},
)
LISTS = (TRANSACTIONS, PAYMENTS, EVENTS)


@dataclass
class MerchantHistory:
    """A merchant with its number of rows of a list, and the latencies of each query in milliseconds."""

    list: MeasuredList
    rows: int
    run: str
    merchant_id: str
    secret_key: str
    latencies: dict[str, Latencies] = field(default_factory=dict)

    def questions(self) -> Iterator[tuple[str, dict[str, str]]]:
        """Names and queries: a page of 20 with the total, the total with one row, pages near the end."""
        for name, query in self.filters():
            yield name, query
            yield f"{name}, total alone", {**query, "limit": "1"}
        for name, query in self.filters():
            matching = 0.5 if "start_date" in query else 1
            for value in query.values():
                matching *= self.list.shares.get(value, 1)
            yield f"{name}, 90 % on", {**query, "offset": str(round(FAR_SHARE * matching * self.rows))}
        far = f"{self.list.prefix}{self.run}{round(FAR_SHARE * self.rows):021}"
        for name, query in self.filters():
            if "start_date" not in query:
                yield f"{name}, 90 % on by cursor", {**query, "after": far}

    def filters(self) -> Iterator[tuple[str, dict[str, str]]]:
        """The dates select the middle half, and start and end within a minute."""
        start, end = (iso(NEWEST - STEP * round(self.rows * share)) for share in (0.75, 0.25))
        for name, query in self.list.filters.items():
            dates = {"start_date": start, "end_date": end} if "dates" in query else {}
            yield name, {key: value for key, value in query.items() if key != "dates"} | dates

    def path(self, query: dict[str, str]) -> str:
        return f"/Thai/v1/{self.list.name}?{urlencode(query)}"

    def request(self, query: dict[str, str]) -> bytes:
        head = f"Host: 127.0.0.1\r\nAuthorization: Bearer {self.secret_key}\r\n\r\n"
        return f"GET {self.path(query)} HTTP/1.1\r\n{head}".encode()


def measure(stack: Stack, *, rows: int, rounds: int, seconds: float) -> str:
    """Measure each list with few and with many rows; return the tables. Raises NotMeasurable."""
    return "\n\n".join(_measure(stack, each, rows, rounds, seconds) for each in LISTS)


def _measure(stack: Stack, measured: MeasuredList, rows: int, rounds: int, seconds: float) -> str:
    """Write both histories of a list and query them in turn; return the table."""
    short, long = (_write(stack, measured, count) for count in (SHORT_ROWS, rows))
    for history in (short, long):
        _check_totals(stack, history)
    for _ in range(rounds):
        for questions in zip(short.questions(), long.questions(), strict=True):
            for history, question in zip((short, long), questions, strict=True):
                _ask(stack.port, history, *question, seconds)
    return table(short, long)


def table(short: MerchantHistory, long: MerchantHistory) -> str:
    """Medians and 95th percentiles of all rounds. `times` is the ratio of the medians."""
    title = f"page and total of {short.list.name}"
    sizes = (f"{short.rows:,} rows", "p50 ms", "p95 ms", f"{long.rows:,}", "p50 ms", "p95 ms", "times")
    lines = [_line("", *sizes), "-" * sum(WIDTHS), "", title]
    for name, before in short.latencies.items():
        after = long.latencies[name]
        ratio = statistics.median(after) / statistics.median(before)
        lines.append(_line(f"  {name}", "", *_figures(before), "", *_figures(after), f"{ratio:.2f}"))
    return "\n".join(lines)


def _write(stack: Stack, measured: MeasuredList, rows: int) -> MerchantHistory:
    """Create a merchant and insert its rows with all triggers; the counts are rolled up at once."""
    made = json.loads(stack.manage("create_merchant", "--name", f"{rows:,}", "--mode", "test", "--json"))
    run = ids.random_text(6)
    result = {"run": run, "merchant": made["merchant_id"], "newest": NEWEST, "step": STEP}
    started = time.monotonic()
    with psycopg.connect(stack.env["DATABASE_URL"], autocommit=True) as connection:
        for last in range(rows, 0, -BATCH):
            first = max(0, last - BATCH)
            connection.execute(measured.write, {**result, "last": last, "first": first})
            connection.execute("DELETE FROM counts_countdelta")
            _tell(f"{measured.name}: {rows - first:,} of {rows:,} after {time.monotonic() - started:.0f} s")
        # Autovacuum does this within a minute or two.
        connection.execute(f"VACUUM (ANALYZE) {measured.table}, counts_listcount, counts_countdelta")
    return MerchantHistory(measured, rows, run, made["merchant_id"], made["secret_key"])


def _check_totals(stack: Stack, history: MerchantHistory) -> None:
    """Check that each total equals a plain count. Raises NotMeasurable."""
    count = f"""SELECT count(*) FROM {history.list.table} WHERE merchant_id = %(merchant)s
        AND {history.list.counted} AND created_at BETWEEN %(start_date)s AND %(end_date)s"""
    unfiltered = dict.fromkeys(("type", "status", "event"), None)
    always = {"start_date": "-infinity", "end_date": "infinity"}
    with psycopg.connect(stack.env["DATABASE_URL"]) as connection:
        for name, query in history.filters():
            asked = {"merchant": history.merchant_id, **unfiltered, **always, **query}
            counted = connection.execute(count, asked).fetchone()
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
