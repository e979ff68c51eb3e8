"""Asks PostgreSQL by which index it finds rows, however few there are and whatever it counted last."""

import json
import re
from collections.abc import Iterator
from typing import Any

from django.db import connection, transaction

# Of these plans only bitmap scans are left, and they exist only where a condition names rows of an index.
BY_CONDITION = ("enable_seqscan", "enable_indexscan", "enable_indexonlyscan")
# Here the order of rows must come from an index.
BY_ORDER = ("enable_seqscan", "enable_bitmapscan", "enable_sort", "enable_incremental_sort")

FIRST_COLUMNS = """
    SELECT pg_get_indexdef(other.indexrelid, 1, true)
    FROM pg_index AS taken JOIN pg_index AS other USING (indrelid)
    WHERE taken.indexrelid = %s::regclass AND (other.indpred IS NULL OR other.indexrelid = taken.indexrelid)
"""


def unbounded(sql: str, *, small: frozenset[str] = frozenset(), params: Any = None) -> list[str]:
    """The tables and indexes that a statement may read whole, but for small ones; empty if there are none.

    Bounded is a condition that an index answers, or the first rows of an index under a LIMIT.
    """
    without_condition = _whole(_plan(sql, params, BY_CONDITION), small, is_limited=False)
    if not without_condition:
        return []
    return _whole(_plan(sql, params, BY_ORDER), small, is_limited=True)


def _plan(sql: str, params: Any, off: tuple[str, ...]) -> dict[str, Any]:
    with transaction.atomic(), connection.cursor() as cursor:
        for name in ("enable_hashjoin", "enable_mergejoin", *off):
            cursor.execute(f"SET LOCAL {name} = off")
        cursor.execute(f"EXPLAIN (FORMAT JSON) {sql}", params)
        (found,) = cursor.fetchone()
        for name in ("enable_hashjoin", "enable_mergejoin", *off):
            cursor.execute(f"SET LOCAL {name} = on")
    plans = found if isinstance(found, list) else json.loads(found)
    return dict(plans[0]["Plan"])


def _whole(plan: dict[str, Any], small: frozenset[str], *, is_limited: bool) -> list[str]:
    return list(_scans(plan, small, is_limited=is_limited))


def _scans(plan: dict[str, Any], small: frozenset[str], *, is_limited: bool) -> Iterator[str]:
    kind, table = plan["Node Type"], plan.get("Relation Name")
    # A bitmap is judged by the index that it is made from.
    if plan.get("Index Name") in small:
        return
    if kind == "Bitmap Index Scan" and not _is_selective(plan):
        yield f"{plan['Index Name']}: {plan.get('Index Cond', 'the whole index')}"
    elif table and table not in small and kind != "Bitmap Heap Scan":
        is_whole_order = is_limited and not {"Filter", "Index Cond"} & plan.keys()
        if not (_is_selective(plan) or is_whole_order):
            yield f"{kind} on {table}: {plan.get('Filter') or plan.get('Index Cond', 'all rows')}"
    # What sorts or counts reads all that is below it; a LIMIT, only what it needs.
    if kind in {"Sort", "Incremental Sort", "Aggregate"}:
        is_limited = False
    elif kind == "Limit":
        is_limited = True
    for part in plan.get("Plans", []):
        if table not in small:
            yield from _scans(part, small, is_limited=is_limited)


def _is_selective(plan: dict[str, Any]) -> bool:
    """Whether the condition is on the first column of an index, so that no index need be read whole.

    Of few rows PostgreSQL may take another index of the table than it would take of many.
    """
    if "Index Cond" not in plan:
        return False
    with connection.cursor() as cursor:
        cursor.execute(FIRST_COLUMNS, [plan["Index Name"]])
        return any(re.search(rf"\b{first}\b", plan["Index Cond"]) for (first,) in cursor.fetchall())
