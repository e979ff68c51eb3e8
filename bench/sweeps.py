"""Sweeps over many rows: expiry against plain SQL, the audit, and the roll-ups with a backlog.

Each has a database of its own without workers, on the server of an instance.
"""

import itertools
import json
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from statistics import median
from typing import Any

import psycopg
from psycopg.conninfo import make_conninfo

from bench import bulk
from bench.bulk import NEWEST, ROWS
from bench.load import NotMeasurable
from core import ids
from tests.stack import ROOT, Stack

DEFAULT_ROWS = 100_000
BACKLOG_FACTOR = 5
ROUNDS = 5
MERCHANT = """
    INSERT INTO merchants_merchant
        (id, name, mode, bank, biller_id, reference2, reference3, late_money, created_at)
    VALUES ('mch_x', 'Somtam House', 'test', 'sandbox', '099400015804189', '', '', 'review', now())
"""
PENDING_CODES = f"""
    INSERT INTO payments_payment
        (id, merchant_id, qr_code_id, status, amount, currency, reference, payer_differs, amount_refunded,
         amount_refunding, created_at, updated_at, expires_at)
    SELECT 'pay_' || tail, 'mch_x', 'qr_' || tail, 'pending', 150000, 'THB', 'order ' || n, false, 0, 0, at,
        at, %(newest)s::timestamptz + (n %% %(parts)s) * interval '1 hour'
    {ROWS} LATERAL (SELECT 1) AS one
"""
EXPIRED = """
    UPDATE payments_payment SET status = 'expired', updated_at = expires_at
    WHERE status = 'pending' AND expires_at <= %(now)s RETURNING *
"""
PLAIN_UPDATE = f"WITH expired AS ({EXPIRED}) SELECT count(*) FROM expired"
PLAIN_UPDATE_AND_EVENTS = f"""
    WITH expired AS ({EXPIRED}), published AS (
        INSERT INTO webhooks_event (id, merchant_id, type, subject_id, body, created_at)
        SELECT 'evt_' || substr(id, 5), merchant_id, 'payment.failed', id, convert_to(json_build_object(
            'event', 'payment.failed', 'event_id', 'evt_' || substr(id, 5), 'data', json_build_object(
                'payment_id', id, 'status', status, 'amount', amount, 'currency', currency,
                'qr_code_id', qr_code_id, 'reference', reference, 'metadata', metadata,
                'failure_code', failure_code), 'timestamp', %(now)s)::text, 'UTF8'), %(now)s
        FROM expired RETURNING 1
    )
    SELECT count(*) FROM published
"""
# What is stored about payments that succeeded: all of it, so that the audit finds no difference.
ACCOUNTS = """
    INSERT INTO ledger_account (id, type, merchant_id, rolled_up_balance, entries_total)
    SELECT id, type, merchant_id, balance * %(rows)s::bigint, balance * %(rows)s::bigint
    FROM (
        SELECT type || ':mch_x', type, 'mch_x', CASE type WHEN 'available' THEN 150000 ELSE 0 END
        FROM unnest(ARRAY['available', 'reserved', 'debt']) AS type
        UNION ALL SELECT 'bank:sandbox', 'bank', NULL, -150000
    ) AS account (id, type, merchant_id, balance)
"""
SUCCEEDED = (
    (
        "payments",
        "status",
        f"""
        INSERT INTO payments_payment
            (id, merchant_id, qr_code_id, status, amount, currency, reference, payer_differs, amount_refunded,
             amount_refunding, created_at, updated_at, expires_at, completed_at)
        SELECT 'pay_' || tail, 'mch_x', 'qr_' || tail, 'succeeded', 150000, 'THB', 'order ' || n, false, 0, 0,
            at, at, at + interval '15 min', at
        {ROWS} LATERAL (SELECT 1) AS one
        """,
    ),
    (
        "transactions",
        "type || '/' || status",
        f"""
        INSERT INTO transactions_transaction
            (id, merchant_id, payment_id, type, status, amount, currency, created_at)
        SELECT 'txn_' || tail, 'mch_x', 'pay_' || tail, 'payment', 'succeeded', 150000, 'THB', at
        {ROWS} LATERAL (SELECT 1) AS one
        """,
    ),
    (
        "events",
        "type",
        f"""
        INSERT INTO webhooks_event (id, merchant_id, type, subject_id, body, created_at)
        SELECT concat('evt_', number, substr(tail, 2)), 'mch_x', type, 'pay_' || tail,
            convert_to(repeat('x', 400), 'UTF8'), at
        {ROWS} LATERAL (VALUES (1, 'payment.pending'), (2, 'payment.succeeded')) AS event (number, type)
        """,
    ),
    (
        "",
        "",
        f"""
        INSERT INTO reconciliation_banktransaction
            (id, bank, bank_transaction_id, later_bank_transaction_id, source, kind, biller_id, reference1,
             reference2, reference3, amount, paid_at, payer_name, payer_bank_code, payer_account_sealed,
             slip_reference, is_confirmed, match_result, merchant_id, payment_id, received_at, matched_at,
             resolution_state)
        SELECT 'btx_' || tail, 'sandbox', 'SANDBOX' || tail, '', 'callback', 'credit', '099400015804189',
            'R' || tail, '', '', 150000, at, 'Somchai', '014', '', '', true, 'applied', 'mch_x',
            'pay_' || tail, at, at, ''
        {ROWS} LATERAL (SELECT 1) AS one
        """,
    ),
    (
        "",
        "",
        f"""
        WITH journal AS (
            INSERT INTO ledger_journal (type, subject_id, amount, created_at)
            SELECT 'payment', 'pay_' || tail, 150000, at
            {ROWS} LATERAL (SELECT 1) AS one RETURNING id, created_at
        )
        INSERT INTO ledger_entry (journal_id, account_id, amount, created_at)
        SELECT id, account_id, amount, created_at
        FROM journal, (VALUES ('available:mch_x', 150000), ('bank:sandbox', -150000))
            AS line (account_id, amount)
        """,
    ),
)
PENDING_ENTRIES = f"""
    WITH entry AS (
        INSERT INTO ledger_entry (journal_id, account_id, amount, created_at)
        SELECT n, 'available:mch_x', 150000, at {ROWS} LATERAL (SELECT 1) AS one
        RETURNING id, account_id, amount
    )
    INSERT INTO ledger_pendingentry (entry_id, account_id, amount) SELECT id, account_id, amount FROM entry
"""
COUNT_DELTAS = f"""
    INSERT INTO counts_countdelta (list, owner_id, kind, minute, delta)
    SELECT 'payments', 'mch_x', 'succeeded', date_trunc('minute', at, 'UTC'), 1
    {ROWS} LATERAL (SELECT 1) AS one
"""
# What requests do meanwhile: a withdrawal locks the balance, and a new payment is counted.
BESIDE_ROLL_UP = {
    "ledger": "SELECT id FROM ledger_account WHERE id = 'available:mch_x' FOR NO KEY UPDATE",
    "counts": """
        INSERT INTO counts_countdelta (list, owner_id, kind, minute, delta)
        VALUES ('payments', 'mch_x', 'succeeded', now(), 1)
    """,
}
BESIDE_NAMES = {"ledger": "another who locks the balance", "counts": "a new row that is counted"}
BESIDE_PAUSE, SAMPLE_PAUSE = 0.02, 0.002
LONGEST_TRANSACTION = """
    SELECT coalesce(extract(epoch FROM max(clock_timestamp() - xact_start)), 0)::float
    FROM pg_stat_activity WHERE datname = current_database() AND backend_type = 'client backend'
        AND application_name <> 'watch'
"""


def measure(stack: Stack, rows: int) -> str:
    """Run each sweep over its own rows; return the table. Raises NotMeasurable."""
    sweeps, lines = Sweeps(stack), ["sweeps", "-" * 100]
    measured = (sweeps.expiry(rows), sweeps.audit(rows), sweeps.roll_ups(BACKLOG_FACTOR * rows))
    for name, figure in itertools.chain(*measured):
        lines.append(f"  {name:<86}{figure:>12}")
        bulk.tell(lines[-1])
    return "\n".join(lines)


class Sweeps:
    """Databases on the server of an instance, and the sweeps in them."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self.url = stack.owner_url
        with self._administrator() as connection:
            connection.execute("CREATE DATABASE sweeps")
        command = [sys.executable, "-m", "django", "migrate", "--verbosity", "0"]
        subprocess.run(command, cwd=ROOT, env=self._environ("sweeps"), check=True, stdout=sys.stderr)

    def expiry(self, rows: int) -> Iterator[tuple[str, str]]:
        """The sweep, and two plain statements, in turn, each over a part of the codes."""
        seconds: dict[str, list[float]] = {name: [] for name in ("sweep", "update", "both")}
        plain = {"update": PLAIN_UPDATE, "both": PLAIN_UPDATE_AND_EVENTS}
        parts = [name for _ in range(ROUNDS) for name in seconds]
        with self._database() as (name, connection):
            bulk.fill(connection, PENDING_CODES, 3 * rows, "x" * 6, what="pending codes", parts=len(parts))
            connection.execute("VACUUM (ANALYZE) payments_payment")
            connection.execute("SET session_replication_role = origin")
            for number, part in enumerate(parts):
                now = NEWEST + timedelta(hours=number)
                if part == "sweep":
                    result = self._run(name, "expire", now.isoformat())
                    count, took = result["rows"], result["seconds"]
                else:
                    count, took = bulk.timed(connection, plain[part], now=now)
                if count < rows // ROUNDS - 1:
                    raise NotMeasurable(f"{part}: {count} rows")
                seconds[part].append(took / count)
        rate, update, both = (1 / median(seconds[part]) for part in ("sweep", "update", "both"))
        yield f"expiry of {rows:,} codes, rows a second", f"{rate:,.0f}"
        yield "  of one UPDATE, and an INSERT of the same events", f"{rate / both:.2f}"
        yield "  of one UPDATE alone", f"{rate / update:.2f}"

    def audit(self, rows: int) -> Iterator[tuple[str, str]]:
        with self._database() as (name, connection):
            for listed, kind, statement in SUCCEEDED:
                counted = bulk.counted_write(listed, statement, kind) if listed else statement
                what = f"audited {listed or 'bank transactions and entries'}"
                bulk.fill(connection, counted, rows, "x" * 6, what=what, list=listed, owner="mch_x")
            connection.execute(ACCOUNTS, {"rows": rows})  # here no trigger refuses a balance without entries
            connection.execute("VACUUM (ANALYZE)")
            result = self._run(name, "audit")
        if result["differences"]:
            raise NotMeasurable(f"The audit found {result['differences']}")
        yield f"audit of {rows:,} payments, seconds", f"{result['seconds']:.1f}"
        for rule, seconds in result["rules"]:
            yield f"  {rule}", f"{seconds:.1f}"

    def roll_ups(self, rows: int) -> Iterator[tuple[str, str]]:
        """The rows a second of the first and of the last run show whether the time for a row grows."""
        for what, statement in (("ledger", PENDING_ENTRIES), ("counts", COUNT_DELTAS)):
            with self._database() as (name, connection):
                connection.execute(ACCOUNTS, {"rows": 0})
                bulk.fill(connection, statement, rows, "x" * 6, what=f"backlog of {what}")
                connection.execute("VACUUM (ANALYZE)")
                with Watch.over(make_conninfo(self.url, dbname=name), BESIDE_ROLL_UP[what]) as watch:
                    runs = [run for run in self._run(name, f"roll_up_{what}") if run[0]]
            count, seconds = (sum(each) for each in zip(*runs, strict=True))
            if count != rows:
                raise NotMeasurable(f"{what}: {count} rows of {rows}")
            yield f"roll-up of {rows:,} {what}, rows a second", f"{count / seconds:,.0f}"
            yield "  in the first run", f"{runs[0][0] / runs[0][1]:,.0f}"
            yield "  in the last full run", f"{runs[-2][0] / runs[-2][1]:,.0f}" if runs[1:] else "-"
            yield "  longest transaction, ms", f"{1000 * watch.longest_transaction:.0f}"
            yield f"  longest wait of {BESIDE_NAMES[what]}, ms", f"{1000 * watch.longest_wait:.0f}"

    @contextmanager
    def _database(self) -> Iterator[tuple[str, psycopg.Connection[Any]]]:
        """A new database with a merchant, and a connection that writes without triggers."""
        name = f"sweeps_{ids.random_text(6).lower()}"
        with self._administrator() as administrator:
            administrator.execute(f"CREATE DATABASE {name} TEMPLATE sweeps")
            try:
                with bulk.connect(make_conninfo(self.url, dbname=name)) as connection:
                    connection.execute(MERCHANT)
                    yield name, connection
            finally:
                administrator.execute(f"DROP DATABASE {name} WITH (FORCE)")

    def _administrator(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self.url, dbname="postgres", autocommit=True)

    def _run(self, name: str, *arguments: str) -> Any:
        command = [sys.executable, "-m", "bench.sweep_driver", *arguments]
        return json.loads(subprocess.check_output(command, cwd=ROOT, env=self._environ(name), text=True))

    def _environ(self, name: str) -> dict[str, str]:
        address, _, _ = self.url.rpartition("/")
        return {**self.stack.environ, **self.stack.env, "DATABASE_URL": f"{address}/{name}"}


@dataclass
class Watch:
    """The longest transaction of a database during a sweep, and the longest time of a statement beside it.

    Seconds. Transactions are sampled, so the true value can be some milliseconds more.
    """

    longest_transaction: float = 0.0
    longest_wait: float = 0.0

    @classmethod
    @contextmanager
    def over(cls, url: str, beside: str) -> Iterator["Watch"]:
        watch, end = cls(), threading.Event()
        threads = [
            threading.Thread(target=watch._sample, args=(url, end)),
            threading.Thread(target=watch._wait, args=(url, beside, end)),
        ]
        for thread in threads:
            thread.start()
        try:
            yield watch
        finally:
            end.set()
            for thread in threads:
                thread.join()

    def _sample(self, url: str, end: threading.Event) -> None:
        with psycopg.connect(url, autocommit=True, application_name="watch") as connection:
            while not end.wait(SAMPLE_PAUSE):
                (seconds,) = connection.execute(LONGEST_TRANSACTION).fetchone() or (0.0,)
                self.longest_transaction = max(self.longest_transaction, seconds)

    def _wait(self, url: str, statement: str, end: threading.Event) -> None:
        with bulk.connect(make_conninfo(url, application_name="watch")) as connection:
            while not end.wait(BESIDE_PAUSE):
                started = time.perf_counter()
                with connection.transaction(force_rollback=True):
                    connection.execute(statement)
                self.longest_wait = max(self.longest_wait, time.perf_counter() - started)
