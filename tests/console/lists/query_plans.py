"""Check query plans: by which index PostgreSQL finds rows, independent of table sizes and statistics."""

import json
import re
from collections.abc import Iterator
from functools import cache
from typing import Any

from django.db import connection, transaction

# With these settings only bitmap scans are left, and they need a condition on an index.
BY_CONDITION = ("enable_seqscan", "enable_indexscan", "enable_indexonlyscan")
# With these settings the order of rows must come from an index. Rows of one instant may still be sorted.
BY_ORDER = ("enable_seqscan", "enable_bitmapscan", "enable_sort")

INDEXES = """
    SELECT pg_get_indexdef(indexrelid, 1, true), coalesce(pg_get_expr(indpred, indrelid), ''),
        (SELECT array_agg(attname::text) FROM pg_attribute WHERE attrelid = indrelid AND attnum > 0)
    FROM pg_index WHERE indrelid = %s::regclass
"""


def unbounded(sql: str, *, small: frozenset[str] = frozenset(), params: Any = None) -> list[str]:
    """The tables and indexes, except small ones, that a statement may read whole.

    A read is bounded by a condition on an index, or by a LIMIT over an index.
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
    if table in small or plan.get("Index Name") in small:
        return
    if table and kind != "ModifyTable" and not _is_selective(table, plan):
        condition = " ".join(_conditions(plan))
        if kind == "Bitmap Heap Scan":
            if not all(each["Index Name"] in small or _reads_a_part(each) for each in _bitmaps(plan)):
                yield f"{kind} on {table}: {condition}"
        elif not is_limited or (condition and not _is_part(table, condition)):
            yield f"{kind} on {table}: {condition or 'all rows'}"
    # A sort or a count reads all rows below it. A LIMIT reads only the rows that it needs.
    of_an_instant = any("created_at" in key for key in plan.get("Presorted Key", []))
    if kind in {"Sort", "Incremental Sort", "Aggregate"} and not of_an_instant:
        is_limited = False
    elif kind == "Limit":
        is_limited = True
    for part in plan.get("Plans", []):
        yield from _scans(part, small, is_limited=is_limited)


def _is_selective(table: str, plan: dict[str, Any]) -> bool:
    """Whether an index of the table begins with a column of the condition.

    With few rows PostgreSQL may choose another index than with many, so all indexes count.
    """
    required = [part for condition in _conditions(plan) for part in _conjuncts(condition)]
    # No index finds an alternative or an excluded value.
    named = " ".join(part for part in required if " OR " not in part and "<>" not in part)
    return any(
        _names(named, first) and all(_names(named, column) for column in columns if _names(where, column))
        for first, where, columns in _indexes(table)
    )


def _is_part(table: str, condition: str) -> bool:
    """Whether a partial index has just these rows. Statistics decide if PostgreSQL reads it or another."""
    return any(_plain(condition) == _plain(where) for _, where, _ in _indexes(table))


def _plain(condition: str) -> str:
    """Without casts to text and brackets, which plans and indexes write differently."""
    return re.sub(r"::text|[()]", "", condition)


def _conditions(plan: dict[str, Any]) -> list[str]:
    return [plan[name] for name in ("Index Cond", "Recheck Cond", "Filter") if name in plan]


def _conjuncts(condition: str) -> Iterator[str]:
    """The parts of `((a) AND (b))`; a condition without AND is one part."""
    depth, start, inner = 0, 0, condition[1:-1]
    for place, character in enumerate(inner):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if depth == 0 and inner.startswith(" AND ", place + 1):
            yield inner[start : place + 1]
            start = place + len(" AND ") + 1
    yield inner[start:]


def _names(text: str, column: str) -> bool:
    """Whether the text has this column, or this expression, such as `lower(payer_name::text)`."""
    if "(" in column:
        return re.sub("[()]", "", column) in re.sub("[()]", "", text)
    return re.search(rf"\b{column}\b", text) is not None


@cache
def _indexes(table: str) -> list[tuple[str, str, list[str]]]:
    """The first column of each index, its WHERE, and the columns of the table."""
    with connection.cursor() as cursor:
        cursor.execute(INDEXES, [table])
        return list(cursor.fetchall())


def _bitmaps(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The indexes of a bitmap scan."""
    for part in plan.get("Plans", []):
        if part["Node Type"] == "Bitmap Index Scan":
            yield part
        else:
            yield from _bitmaps(part)


def _reads_a_part(bitmap: dict[str, Any]) -> bool:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_get_indexdef(%s::regclass, 1, true)", [bitmap["Index Name"]])
        (first,) = cursor.fetchone()
    return _names(bitmap.get("Index Cond", ""), first)
