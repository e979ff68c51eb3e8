"""Exact totals and positions in a long history, without counting its rows one by one.

Triggers count the rows in buckets (`transactions/sql/rules.sql`). Everything here is SQL text for one
statement, so that totals and pages come from one snapshot and a roll-up meanwhile changes nothing.
"""

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from core import rows
from transactions.models import CountBucket

# Before and after every row.
BEGINNING = datetime(1, 1, 1, tzinfo=UTC)
END = datetime(9999, 12, 1, tzinfo=UTC)
ROLL_UP_BATCH = 10_000
BUCKETS = ", ".join(f"'{bucket}'" for bucket in CountBucket)


@dataclass(frozen=True, slots=True)
class TransactionFilter:
    """Rows of one merchant, from `start` until before `end`, and of one type or status if given."""

    merchant_id: str
    type: str | None = None
    status: str | None = None
    start: datetime = BEGINNING
    end: datetime = END

    @property
    def condition(self) -> str:
        """The filter in SQL, without its times."""
        given = [name for name in ("type", "status") if getattr(self, name) is not None]
        return " AND ".join(["merchant_id = %(merchant_id)s", *(f"{name} = %({name})s" for name in given)])

    @property
    def values(self) -> dict[str, Any]:
        """The parameters of all SQL of this module."""
        return {**asdict(self), "beginning": BEGINNING, "forever": END}


def total_sql(criteria: TransactionFilter) -> str:
    """SQL of the number of rows."""
    before_end, before_start = (_count_before(f"%({name})s", criteria) for name in ("end", "start"))
    return f"({before_end}) - ({before_start})"


def position_sql(criteria: TransactionFilter) -> str:
    """SQL of the position of row `%(offset)s`, counted from 0 and newest first: `SELECT ... AS before, rest`.

    The row is number `rest` of those created before `before`, and at most a minute older than `before`. The
    result is empty if there is no such row. Each step of the recursion searches the buckets of the next
    narrower size within the bucket that was found.
    """
    newer_than_end = f"({_count_before('%(forever)s', criteria)}) - ({_count_before('%(end)s', criteria)})"
    return f"""
        WITH RECURSIVE place (depth, start, before, rest) AS (
            SELECT 0, %(beginning)s::timestamptz, %(forever)s::timestamptz,
                %(offset)s::bigint + {newer_than_end}
            UNION ALL
            SELECT depth + 1, found.starts_at, found.starts_at + ('1 ' || found.bucket)::interval,
                place.rest - found.newer
            FROM place, LATERAL (
                SELECT bucket, starts_at, count,
                    (sum(count) OVER (ORDER BY starts_at DESC) - count)::bigint AS newer
                FROM ({_buckets_within_place(criteria)}) AS candidate
            ) AS found
            WHERE found.newer <= place.rest AND place.rest < found.newer + found.count
        )
        SELECT before, rest FROM place WHERE depth = {len(CountBucket)}
    """  # noqa: S608


def roll_up(*, batch: int = ROLL_UP_BATCH) -> int:
    """Roll count deltas up, `batch` a commit. Returns how many there were.

    Runs may overlap: each skips the rows that another has locked.
    """
    total = deleted = _roll_up_batch(batch)
    while deleted == batch:
        deleted = _roll_up_batch(batch)
        total += deleted
    return total


def _roll_up_batch(batch: int) -> int:
    # A trigger adds the deleted deltas to the counts.
    cursor = rows.run(
        """
        DELETE FROM transactions_countdelta WHERE id = ANY(ARRAY(
            SELECT id FROM transactions_countdelta ORDER BY id LIMIT %s FOR UPDATE SKIP LOCKED
        ))
        """,
        [batch],
    )
    return int(cursor.rowcount)


def _count_before(instant: str, criteria: TransactionFilter) -> str:
    """SQL of the number of rows created before an instant, without the limits `start` and `end`.

    Buckets of each size cover the time since the last bucket of the next larger size. Deltas cover rows that
    are not rolled up. Rows of the last minute are counted one by one.
    """
    return f"""
        SELECT coalesce(sum(count), 0)::bigint FROM (
            SELECT whole.count
            FROM (VALUES ('month', NULL), ('day', 'month'), ('hour', 'day'), ('minute', 'hour'))
                AS size (bucket, wider),
            LATERAL (
                SELECT sum(count) AS count FROM transactions_transactioncount
                WHERE {criteria.condition} AND bucket = size.bucket
                    AND starts_at >= coalesce(date_trunc(wider, {instant}::timestamptz, 'UTC'), '-infinity')
                    AND starts_at < date_trunc(size.bucket, {instant}::timestamptz, 'UTC')
            ) AS whole
            UNION ALL
            SELECT delta FROM transactions_countdelta
            WHERE {criteria.condition} AND minute < date_trunc('minute', {instant}::timestamptz, 'UTC')
            UNION ALL
            SELECT count(*) FROM transactions_transaction
            WHERE {criteria.condition} AND created_at < {instant}
                AND created_at >= date_trunc('minute', {instant}::timestamptz, 'UTC')
        ) AS part
    """  # noqa: S608


def _buckets_within_place(criteria: TransactionFilter) -> str:
    """SQL of the buckets of the next size within the bucket of `place`, deltas included."""
    return f"""
        SELECT bucket, starts_at, sum(count)::bigint AS count
        FROM (SELECT (ARRAY[{BUCKETS}])[place.depth + 1] AS bucket) AS next,
        LATERAL (
            SELECT starts_at, count FROM transactions_transactioncount AS counted
            WHERE {criteria.condition} AND counted.bucket = next.bucket
                AND starts_at >= start AND starts_at < before
            UNION ALL
            SELECT date_trunc(next.bucket, minute, 'UTC'), delta FROM transactions_countdelta
            WHERE {criteria.condition} AND minute >= start AND minute < before
        ) AS part
        GROUP BY bucket, starts_at
    """  # noqa: S608
