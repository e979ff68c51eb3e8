"""How many rows of the history match, and where the row of a certain number is, without counting them all.

The answer is the sum of the tallies of whole spans, of what is not yet in a tally, and of the rows that the
ends of the stretch cut out of a minute. All is SQL text for one statement, so that one snapshot answers and
`fold`, which moves changes into the tallies meanwhile, is not seen.
"""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from core import rows
from transactions.spans import BEGINNING, END, SPANS, Piece, pieces

FOLD_BATCH = 10_000


@dataclass(frozen=True, slots=True)
class Wanted:
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
            **_stretch("within", pieces(self.start, self.end)),
            **_stretch("newer", pieces(self.end, END)),
        }


def total_sql(wanted: Wanted) -> str:
    """The SQL of the number of rows: `SELECT ... AS count`."""
    return _count_sql("within", wanted.condition)


def place_sql(wanted: Wanted) -> str:
    """The SQL of where row `%(offset)s` is, from 0, newest first: `SELECT ... AS before, rest`.

    It is the one after `rest` rows of those created before `before`, and within a minute of it. No row where
    there are not so many. From the widest spans to a minute, each step looks only into the span found.
    """
    return f"""
        WITH RECURSIVE place (depth, start, before, rest) AS (
            SELECT 0, %(beginning)s::timestamptz, %(forever)s::timestamptz,
                %(offset)s::bigint + ({_count_sql("newer", wanted.condition)})
            UNION ALL
            SELECT depth + 1, found.begins_at, found.begins_at + ('1 ' || found.span)::interval,
                place.rest - found.newer
            FROM place, LATERAL (
                SELECT span, begins_at, count,
                    (sum(count) OVER (ORDER BY begins_at DESC) - count)::bigint AS newer
                FROM ({_buckets_sql(wanted.condition)}) AS bucket
            ) AS found
            WHERE found.newer <= place.rest AND place.rest < found.newer + found.count
        )
        SELECT before, rest FROM place WHERE depth = {len(SPANS)}
    """  # noqa: S608


def fold(*, batch: int = FOLD_BATCH) -> int:
    """Move what is uncounted into the tallies, `batch` changes a commit. Returns how many there were.

    Folds may run at once: each takes what no other holds.
    """
    folded = found = _fold_batch(batch)
    while found == batch:
        found = _fold_batch(batch)
        folded += found
    return folded


def _fold_batch(batch: int) -> int:
    # A trigger adds to the tallies what is deleted.
    gone = rows.run(
        """
        DELETE FROM transactions_uncounted WHERE id = ANY(ARRAY(
            SELECT id FROM transactions_uncounted ORDER BY id LIMIT %s FOR UPDATE SKIP LOCKED
        ))
        """,
        [batch],
    )
    return int(gone.rowcount)


def _count_sql(stretch: str, condition: str) -> str:
    return f"""
        SELECT coalesce(sum(count), 0)::bigint AS count FROM (
            SELECT tally.count
            FROM unnest(
                %({stretch}_spans)s::text[],
                %({stretch}_starts)s::timestamptz[],
                %({stretch}_ends)s::timestamptz[]
            ) AS piece (span, start, before),
            LATERAL (
                SELECT sum(count) AS count FROM transactions_tally
                WHERE {condition} AND span = piece.span AND begins_at >= start AND begins_at < before
            ) AS tally
            UNION ALL
            SELECT change FROM transactions_uncounted
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
    """The spans of the depth that `place` comes to next, within the span that it has found."""
    spans = ", ".join(f"'{span}'" for span in SPANS)
    return f"""
        SELECT span, begins_at, sum(count)::bigint AS count
        FROM (SELECT (ARRAY[{spans}])[place.depth + 1] AS span) AS next,
        LATERAL (
            SELECT begins_at, count FROM transactions_tally AS tally
            WHERE {condition} AND tally.span = next.span AND begins_at >= start AND begins_at < before
            UNION ALL
            SELECT date_trunc(next.span, minute, 'UTC'), change FROM transactions_uncounted
            WHERE {condition} AND minute >= start AND minute < before
        ) AS part
        GROUP BY span, begins_at
    """  # noqa: S608


def _stretch(name: str, found: list[Piece]) -> dict[str, Any]:
    """The pieces of a stretch of time by the names of `_count_sql`."""
    whole = [piece for piece in found if piece.span]
    cut = [piece for piece in found if not piece.span]
    return {
        f"{name}_spans": [piece.span for piece in whole],
        f"{name}_starts": [piece.start for piece in whole],
        f"{name}_ends": [piece.end for piece in whole],
        f"{name}_first": whole[0].start if whole else BEGINNING,
        f"{name}_last": whole[-1].end if whole else BEGINNING,
        f"{name}_cut_starts": [piece.start for piece in cut],
        f"{name}_cut_ends": [piece.end for piece in cut],
    }
