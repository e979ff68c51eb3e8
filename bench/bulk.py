"""Write millions of rows into an instance."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg

from tests.stack import Stack

# Ten million rows are most of a year.
STEP = timedelta(seconds=3)
NEWEST = datetime(2026, 11, 20, 12, 34, 56, 789000, UTC)
BATCH = 500_000
PROGRESS_SECONDS = 10.0
INDEX_MEMORY = "1GB"
# The row that a search by id finds.
SOUGHT = 5_000
# A row `n` is the n-th newest and has an id that ends in `tail`.
ROWS = """
FROM generate_series(%(last)s::bigint - 1, %(first)s::bigint, -1) AS n,
LATERAL (
    SELECT %(run)s || lpad(n::text, 21, '0'), %(newest)s::timestamptz - n * %(step)s::interval
) AS row (tail, at),
"""
LISTS_WITH_AMOUNTS = {"payments", "transactions", "refunds", "withdrawals", "balance"}
# Adds the written rows to the counts of their owner and of all merchants, as triggers would.
COUNTED_WRITE = """
    WITH written AS ({write} RETURNING {kind} AS kind, {amount} AS amount, created_at),
    minute AS (
        SELECT kind, date_trunc('minute', created_at, 'UTC') AS at, count(*) AS rows, sum(amount) AS amount
        FROM written GROUP BY 1, 2
    )
    INSERT INTO counts_listcount AS known (list, owner_id, kind, bucket, starts_at, count, amount)
    SELECT %(list)s, owner_id, kind, bucket, date_trunc(bucket, at, 'UTC'), sum(rows), sum(amount)
    FROM minute, unnest(ARRAY['month', 'day', 'hour', 'minute']) AS bucket,
    LATERAL (
        SELECT %(owner)s::text AS owner_id UNION ALL
        SELECT mode FROM merchants_merchant WHERE id = %(owner)s::text AND bucket <> 'minute'
    ) AS owner
    GROUP BY 2, 3, 4, 5
    ON CONFLICT (owner_id, list, bucket, starts_at, kind)
        DO UPDATE SET count = known.count + EXCLUDED.count, amount = known.amount + EXCLUDED.amount
"""

END_SESSIONS = """
    SELECT pg_terminate_backend(pid) FROM pg_stat_activity
    WHERE datname = current_database() AND state <> 'idle' AND pid <> pg_backend_pid()
"""


def counted_write(list_name: str, write: str, kind: str) -> str:
    """A statement that writes rows of a list by `write` and counts them in the same commit."""
    amount = "amount" if list_name in LISTS_WITH_AMOUNTS else "0"
    return COUNTED_WRITE.format(write=write, kind=kind, amount=amount)


def tail(run: str, number: int = SOUGHT) -> str:
    """The end of the id of a row."""
    return f"{run}{number:021}"


def connect(url: str) -> psycopg.Connection[Any]:
    """A connection for writing many rows: no trigger and no check of a foreign key runs."""
    connection = psycopg.connect(url, autocommit=True)
    connection.execute("SET session_replication_role = replica")
    return connection


def fill(
    connection: psycopg.Connection[Any], statement: str, rows: int, run: str, *, what: str, **values: Any
) -> None:
    """Write `rows` rows by a statement that takes numbers from `ROWS`. Tells its progress."""
    started = told = time.monotonic()
    for last in range(rows, 0, -BATCH):
        first = max(0, last - BATCH)
        place = {"first": first, "last": last, "run": run, "newest": NEWEST, "step": STEP}
        connection.execute(statement, {**place, **values})
        if time.monotonic() > told + PROGRESS_SECONDS:
            told = time.monotonic()
            tell(f"{what}: {rows - first:,} of {rows:,} rows after {told - started:.0f} s")
    tell(f"{what}: {rows:,} rows after {time.monotonic() - started:.0f} s")


@contextmanager
def unindexed(connection: psycopg.Connection[Any], table: str, rows: int) -> Iterator[None]:
    """Write `rows` rows without the indexes of a table, and build the indexes at the end.

    Indexes that grow with many rows take three times as long and twice the space. No other session may look
    for duplicates in this table meanwhile.
    """
    if rows <= BATCH:
        yield
        return
    connection.execute(
        "UPDATE pg_index SET indisready = false, indisvalid = false WHERE indrelid = %s::regclass", [table]
    )
    yield
    started = time.monotonic()
    connection.execute(f"SET maintenance_work_mem = '{INDEX_MEMORY}'")
    connection.execute(f"REINDEX TABLE {table}")
    tell(f"  indexes of {table} after {time.monotonic() - started:.0f} s")


@contextmanager
def workers_paused(stack: Stack, connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Stop the workers meanwhile: without indexes each of their queries reads a whole table.

    Their sessions end, because one of them may hold a lock.
    """
    workers = [stack.pids[name] for name in ("webhooks", "banks", "default")]
    for pid in workers:
        os.kill(pid, signal.SIGSTOP)
    try:
        connection.execute(END_SESSIONS)
        yield
    finally:
        for pid in workers:
            os.kill(pid, signal.SIGCONT)


def timed(connection: psycopg.Connection[Any], statement: str, **values: Any) -> tuple[int, float]:
    """Run a statement that returns a number of rows; return it, and the seconds."""
    started = time.perf_counter()
    (count,) = connection.execute(statement, values).fetchone() or (0,)
    return count, time.perf_counter() - started


def tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
