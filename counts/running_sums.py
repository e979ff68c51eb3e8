"""Running sums over a counted list, without adding up its rows one by one."""

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from core.database import rows
from counts import counting
from counts.lists import CountedList

# The sums before the minute of each row come from the counts, as in `counting`. The rows of these minutes are
# added one by one, by the index of each kind. `change` and `current` are what the counts lack, and the rows.
# ORDER BY makes the planner read each minute by the index. Without it the planner expects a ninth of an
# owner's rows in a minute, and reads all of them if the table is large.
SUMS = """
WITH page AS (
    SELECT id, created_at, date_trunc('minute', created_at, 'UTC') AS minute
    FROM unnest(%(ids)s::text[], %(times)s::timestamptz[]) AS page (id, created_at)
),
weight (kind, {names}) AS (VALUES {weights}),
change AS MATERIALIZED (
    SELECT date_trunc('minute', period, 'UTC') AS minute, kind, amount FROM counts_countdelta
    WHERE list = '{list}' AND owner_id = %(owner_id)s AND period < {closed}
    UNION ALL {open_rows}
),
earlier AS (
    SELECT minute, {sums_of_part} FROM (SELECT DISTINCT minute FROM page) AS wanted, LATERAL (
        SELECT kind, amount
        FROM (VALUES ('month', NULL), ('day', 'month'), ('hour', 'day'), ('minute', 'hour'))
            AS size (bucket, wider),
        LATERAL (
            SELECT kind, amount FROM counts_listcount
            WHERE list = '{list}' AND owner_id = %(owner_id)s AND bucket = size.bucket
                AND starts_at >= coalesce(date_trunc(wider, wanted.minute, 'UTC'), '-infinity')
                AND starts_at < date_trunc(size.bucket, wanted.minute, 'UTC')
        ) AS whole
        UNION ALL
        SELECT kind, amount FROM change WHERE change.minute < wanted.minute
    ) AS part JOIN weight USING (kind)
    GROUP BY minute
),
current AS (
    SELECT id, minute, {running}
    FROM (SELECT minute, max(created_at) AS last FROM page GROUP BY minute) AS wanted, LATERAL (
        SELECT id, created_at, {kind} AS kind, {amount} AS amount FROM {own_rows}
        AND created_at >= minute AND created_at <= last
        ORDER BY created_at, id
    ) AS row JOIN weight USING (kind)
)
SELECT page.id, {totals}
FROM page JOIN current USING (id) LEFT JOIN earlier ON earlier.minute = page.minute
"""


def up_to(
    counted: CountedList[Any], owner_id: str, page: Sequence[Any], weights: Mapping[str, tuple[int, ...]]
) -> dict[str, tuple[int, ...]]:
    """For each row of `page`, sums over all rows of the list up to it, by id, from one snapshot.

    weights: what an amount counts for in each sum, by kind. All kinds have the same number of sums.
    """
    values = {
        "owner_id": owner_id,
        "ids": [row.id for row in page],
        "times": [row.created_at for row in page],
    }
    found = rows.run(_sql(counted, tuple(weights.items())), values).fetchall() if page else []
    return {row_id: tuple(int(each) for each in sums) for row_id, *sums in found}


@lru_cache
def _sql(counted: CountedList[Any], weights: tuple[tuple[str, tuple[int, ...]], ...]) -> str:
    names = [f"w{number}" for number in range(len(weights[0][1]))]
    kinds = ", ".join(f"'{kind}'" for kind in counted.kinds)
    own_rows = (
        f"{counted.table} WHERE {counted.owner_column} = %(owner_id)s AND {counted.kind_sql} IN ({kinds})"
    )
    window = "OVER (PARTITION BY minute ORDER BY created_at, id)"
    return SUMS.format(
        list=counted.name,
        own_rows=own_rows,
        kind=counted.kind_sql,
        amount=counted.amount_sql,
        names=", ".join(names),
        closed=counting.CLOSED,
        open_rows=counting.open_rows(
            [own_rows], f"{counted.kind_sql}, sum({counted.amount_sql})", grouped="1, 2"
        ),
        weights=", ".join(f"('{kind}', {', '.join(map(str, each))})" for kind, each in weights),
        sums_of_part=", ".join(f"sum(part.amount * {name}) AS {name}" for name in names),
        running=", ".join(f"sum(row.amount * {name}) {window} AS {name}" for name in names),
        totals=", ".join(f"coalesce(earlier.{name}, 0) + current.{name}" for name in names),
    )
