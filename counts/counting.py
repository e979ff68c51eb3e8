"""Exact totals and positions in a long list, without counting its rows one by one.

Triggers count the rows in buckets when their period closes (`counts/sql/rules.sql`). Totals and positions
are SQL text for one statement, so that total and page come from one snapshot and a roll-up meanwhile changes
nothing. They read what the buckets lack from `change`, which `common_sql` defines for the whole statement.
"""

import logging
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.db import DatabaseError

from core.database import rows
from core.deadlines import Deadline
from counts.lists import ListFilter
from counts.models import CountBucket

log = logging.getLogger("counts")
ROLL_UP_BATCH = 10_000
ROLL_UP_SECONDS = 4.0  # a roll-up ends after 4 s, before the next one starts
# How long a period stays open at least: a request stores its rows soon after the time that they have. Rows
# that come later are counted as well, each by a delta.
OPEN_FOR = timedelta(seconds=5)
STEP = "UPDATE counts_countclock SET target = counts_period(statement_timestamp() - %s)"
CLOSED = "(SELECT closed FROM counts_countclock)"
# A trigger adds the deleted deltas to the counts. Each batch starts after the last one, because deleted rows
# stay in the index until vacuum.
ROLL_UP = f"""
WITH gone AS (
    DELETE FROM counts_countdelta WHERE id = ANY(ARRAY(
        SELECT id FROM counts_countdelta WHERE id > %s AND period < {CLOSED} ORDER BY id LIMIT %s
    ))
    RETURNING id
)
SELECT count(*), max(id) FROM gone
"""  # noqa: S608
BUCKETS = ", ".join(f"'{bucket}'" for bucket in CountBucket)


def common_sql(criteria: ListFilter[Any]) -> str:
    """SQL of `due` and `change`, for the WITH of a statement.

    `due` are the rows that the clock has moved. `change` is what the counts lack, by minute.
    """
    deltas = f"""
        SELECT date_trunc('minute', period, 'UTC') AS minute, delta FROM counts_countdelta
        WHERE {criteria.count_condition} AND period < {CLOSED}
        UNION ALL {open_rows(criteria.stored, "count(*)")}
    """  # noqa: S608
    rule = criteria.counted.clock_rule
    if rule is None or not criteria.moved:
        return f"change AS MATERIALIZED ({deltas})"
    return f"""
        due AS MATERIALIZED (
            SELECT created_at, id FROM {criteria.counted.table}
            WHERE {criteria.counted.owner_column} = %(owner_id)s
                AND {criteria.counted.condition_of(rule.before)} AND {rule.condition}
        ),
        change AS MATERIALIZED (
            {deltas} UNION ALL
            SELECT date_trunc('minute', created_at, 'UTC'), {criteria.moved} FROM due
        )
    """  # noqa: S608


def open_rows(sources: Iterable[str], columns: str, grouped: str = "1") -> str:
    """SQL of the rows of open periods by their minute, then `columns`.

    The planner does not know the instant. Between two bounds it expects few rows, and so takes the index.
    """
    return " UNION ALL ".join(
        f"""
            SELECT date_trunc('minute', created_at, 'UTC'), {columns} FROM {source}
            AND created_at >= {CLOSED} AND created_at < 'infinity' GROUP BY {grouped}
        """  # noqa: S608
        for source in sources
    )


def total_sql(criteria: ListFilter[Any]) -> str:
    """SQL of the number of rows."""
    before_end, before_start = (_count_before(f"%({name})s", criteria) for name in ("end", "start"))
    return f"({before_end}) - ({before_start})"


def position_sql(criteria: ListFilter[Any]) -> str:
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


def roll_up(*, batch: int = ROLL_UP_BATCH, open_for: timedelta = OPEN_FOR) -> int:
    """Close old periods, then roll count deltas up until a deadline, `batch` a commit. Returns how many.

    A period closes in the run after the one that announced it. Runs may overlap: each row is rolled up once.
    """
    try:
        # Not in one transaction: the first closes and announces, the second marks the announcement.
        for _ in range(2):
            rows.run(STEP, [open_for])
    except DatabaseError as error:
        log.warning("No period was closed: %s", type(error).__name__)
    total, after, deadline = 0, 0, Deadline.after(ROLL_UP_SECONDS)
    while not deadline.is_past:
        count, after = rows.run(ROLL_UP, [after, batch]).fetchone()
        total += count
        if count < batch:
            break
    return total


def _count_before(instant: str, criteria: ListFilter[Any]) -> str:
    """SQL of the number of rows created before an instant, without the limits `start` and `end`.

    Buckets of each size cover the time since the last bucket of the next larger size. Changes cover rows that
    are not rolled up. Rows of the last minute are counted one by one.
    """
    of_last_minute = " UNION ALL ".join(
        f"""
            SELECT count(*) FROM {source} AND created_at < {instant}
                AND created_at >= date_trunc('minute', {instant}::timestamptz, 'UTC')
        """  # noqa: S608
        for source in criteria.sources
    )
    return f"""
        SELECT coalesce(sum(count), 0)::bigint FROM (
            SELECT whole.count
            FROM (VALUES ('month', NULL), ('day', 'month'), ('hour', 'day'), ('minute', 'hour'))
                AS size (bucket, wider),
            LATERAL (
                SELECT sum(count) AS count FROM counts_listcount
                WHERE {criteria.count_condition} AND bucket = size.bucket
                    AND starts_at >= coalesce(date_trunc(wider, {instant}::timestamptz, 'UTC'), '-infinity')
                    AND starts_at < date_trunc(size.bucket, {instant}::timestamptz, 'UTC')
            ) AS whole
            UNION ALL
            SELECT delta FROM change WHERE minute < date_trunc('minute', {instant}::timestamptz, 'UTC')
            UNION ALL
            {of_last_minute}
        ) AS part
    """  # noqa: S608


def _buckets_within_place(criteria: ListFilter[Any]) -> str:
    """SQL of the buckets of the next size within the bucket of `place`, changes included."""
    return f"""
        SELECT bucket, starts_at, sum(count)::bigint AS count
        FROM (SELECT (ARRAY[{BUCKETS}])[place.depth + 1] AS bucket) AS next,
        LATERAL (
            SELECT starts_at, count FROM counts_listcount AS counted
            WHERE {criteria.count_condition} AND counted.bucket = next.bucket
                AND starts_at >= start AND starts_at < before
            UNION ALL
            SELECT date_trunc(next.bucket, minute, 'UTC'), delta FROM change
            WHERE minute >= start AND minute < before
        ) AS part
        GROUP BY bucket, starts_at
    """  # noqa: S608
