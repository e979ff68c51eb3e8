"""How many rows of the history match, and where the row of a certain number is, without counting them all.

The answer is the sum of the counts of whole buckets, of the deltas that are not rolled up yet, and of the
rows that the ends of the stretch cut out of a minute. All is SQL text for one statement, so that one
snapshot answers and `roll_up`, which moves changes into the counts meanwhile, is not seen.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from core import rows
from transactions.buckets import BEGINNING, BUCKETS, END, TimeRange, split

ROLL_UP_BATCH = 10_000


@dataclass(frozen=True, slots=True)
class TransactionFilter:
    """Which rows: of one merchant, of one type or status where given, from `start` until before `end`."""

    merchant_id: str
    type: str | None = None
    status: str | None = None
    start: datetime = BEGINNING
    end: datetime = END

    @property
    def condition(self) -> str:
        """SQL that holds for its rows, except for when they were created."""
        given = [name for name in ("type", "status") if getattr(self, name) is not None]
        return " AND ".join(["merchant_id = %(merchant_id)s", *(f"{name} = %({name})s" for name in given)])

    @property
    def values(self) -> dict[str, Any]:
        """What the SQL of this module asks for by name."""
        return {
            "merchant_id": self.merchant_id,
            "type": self.type,
            "status": self.status,
            "start": self.start,
            "end": self.end,
            "beginning": BEGINNING,
            "forever": END,
            **_range_parameters("within", split(self.start, self.end)),
            **_range_parameters("newer", split(self.end, END)),
        }


def total_sql(criteria: TransactionFilter) -> str:
    """The SQL of the number of rows: `SELECT ... AS count`."""
    return _count_sql("within", criteria.condition)


def position_sql(criteria: TransactionFilter) -> str:
    """The SQL of where row `%(offset)s` is, from 0, newest first: `SELECT ... AS before, rest`.

    It is the one after `rest` rows of those created before `before`, and within a minute of it. No row where
    there are not so many. From the widest buckets to a minute, each step looks only into the bucket found.
    """
    return f"""
        WITH RECURSIVE place (depth, start, before, rest) AS (
            SELECT 0, %(beginning)s::timestamptz, %(forever)s::timestamptz,
                %(offset)s::bigint + ({_count_sql("newer", criteria.condition)})
            UNION ALL
            SELECT depth + 1, found.starts_at, found.starts_at + ('1 ' || found.bucket)::interval,
                place.rest - found.newer
            FROM place, LATERAL (
                SELECT bucket, starts_at, count,
                    (sum(count) OVER (ORDER BY starts_at DESC) - count)::bigint AS newer
                FROM ({_buckets_sql(criteria.condition)}) AS candidate
            ) AS found
            WHERE found.newer <= place.rest AND place.rest < found.newer + found.count
        )
        SELECT before, rest FROM place WHERE depth = {len(BUCKETS)}
    """  # noqa: S608


def roll_up(*, batch: int = ROLL_UP_BATCH) -> int:
    """Roll count deltas up, `batch` a commit. Returns how many there were.

    Runs may overlap: each skips the rows that another has locked.
    """
    folded = found = _roll_up_batch(batch)
    while found == batch:
        found = _roll_up_batch(batch)
        folded += found
    return folded


def _roll_up_batch(batch: int) -> int:
    # A trigger adds the deleted deltas to the counts.
    gone = rows.run(
        """
        DELETE FROM transactions_countdelta WHERE id = ANY(ARRAY(
            SELECT id FROM transactions_countdelta ORDER BY id LIMIT %s FOR UPDATE SKIP LOCKED
        ))
        """,
        [batch],
    )
    return int(gone.rowcount)


def _count_sql(stretch: str, condition: str) -> str:
    return f"""
        SELECT coalesce(sum(count), 0)::bigint AS count FROM (
            SELECT counted.count
            FROM unnest(
                %({stretch}_buckets)s::text[],
                %({stretch}_starts)s::timestamptz[],
                %({stretch}_ends)s::timestamptz[]
            ) AS piece (bucket, start, before),
            LATERAL (
                SELECT sum(count) AS count FROM transactions_transactioncount
                WHERE {condition} AND bucket = piece.bucket AND starts_at >= start AND starts_at < before
            ) AS counted
            UNION ALL
            SELECT delta FROM transactions_countdelta
            WHERE {condition} AND minute >= %({stretch}_first)s AND minute < %({stretch}_last)s
            UNION ALL
            SELECT cut.count
            FROM unnest(%({stretch}_cut_starts)s::timestamptz[], %({stretch}_cut_ends)s::timestamptz[])
            AS piece (start, before),
            LATERAL (
                SELECT count(*) AS count FROM transactions_transaction
                WHERE {condition} AND created_at >= start AND created_at < before
            ) AS cut
        ) AS part
    """  # noqa: S608


def _buckets_sql(condition: str) -> str:
    """The buckets of the depth that `place` comes to next, within the bucket that it has found."""
    buckets = ", ".join(f"'{bucket}'" for bucket in BUCKETS)
    return f"""
        SELECT bucket, starts_at, sum(count)::bigint AS count
        FROM (SELECT (ARRAY[{buckets}])[place.depth + 1] AS bucket) AS next,
        LATERAL (
            SELECT starts_at, count FROM transactions_transactioncount AS counted
            WHERE {condition} AND counted.bucket = next.bucket AND starts_at >= start AND starts_at < before
            UNION ALL
            SELECT date_trunc(next.bucket, minute, 'UTC'), delta FROM transactions_countdelta
            WHERE {condition} AND minute >= start AND minute < before
        ) AS part
        GROUP BY bucket, starts_at
    """  # noqa: S608


def _range_parameters(name: str, found: list[TimeRange]) -> dict[str, Any]:
    """The pieces of a stretch of time by the names of `_count_sql`."""
    whole = [piece for piece in found if piece.bucket]
    cut = [piece for piece in found if not piece.bucket]
    return {
        f"{name}_buckets": [piece.bucket for piece in whole],
        f"{name}_starts": [piece.start for piece in whole],
        f"{name}_ends": [piece.end for piece in whole],
        f"{name}_first": whole[0].start if whole else BEGINNING,
        f"{name}_last": whole[-1].end if whole else BEGINNING,
        f"{name}_cut_starts": [piece.start for piece in cut],
        f"{name}_cut_ends": [piece.end for piece in cut],
    }
