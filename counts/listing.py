"""A page of a counted list, newest first, and the total, by one statement (one snapshot)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Generic, TypeVar

from django.db.models import Model

from core.database import rows
from core.http import paging
from core.http.paging import Cursor
from core.http.responses import ApiResponse
from counts import counting
from counts.lists import BEGINNING, CountedList, ListFilter, period_of

MAX_PLAIN_OFFSET = 200  # up to this offset, skipping rows costs less than a search for the first one
M = TypeVar("M", bound=Model)


@dataclass(frozen=True, slots=True)
class ListPage(Generic[M]):
    """A page and the number of all rows that match."""

    rows: list[M]
    total: int


def page(
    criteria: ListFilter[M], *, limit: int, offset: int = 0, cursor: Cursor | None = None
) -> ListPage[M]:
    """Up to `limit` rows after the newest `offset`, or next to the row of the cursor."""
    values = {**criteria.values, "limit": limit, "offset": offset}
    if cursor is not None:
        values |= {"cursor_at": cursor.created_at, "cursor_id": cursor.id}
    found = rows.run(_page_sql(criteria, _range(criteria, offset, cursor)), values).fetchall()
    # Each row has the total; an empty page is one row with the total only.
    listed = [rows.instance(criteria.counted.model, row) for _, *row in found if row[0] is not None]
    return ListPage(listed, found[0][0])


def read(criteria: ListFilter[M], query: dict[str, Any]) -> ListPage[M]:
    """The rows that a query of the API asks for, with the total. Raises InvalidParameters for the cursor."""
    everything = criteria.counted.model._default_manager.filter(**criteria.of_owner)
    cursor = paging.find_cursor(everything, query)
    return page(criteria, limit=query["limit"], offset=query["offset"], cursor=cursor)


def of_owner(
    counted: CountedList[M],
    owner_id: str,
    query: dict[str, Any],
    show: Callable[[M], Mapping[str, Any]],
    *,
    selective: str = "",
    plural: str = "",
    now: datetime = BEGINNING,
    load: Callable[[Sequence[M]], None] | None = None,
) -> ApiResponse:
    """The page of an owner's list that a query of the API asks for, by status and period.

    selective: a filter that few rows match, so they are read and not counted. plural: by default the name.
    """
    if selective in query:
        mine = counted.model._default_manager.filter(**{counted.owner_column: owner_id})
        where = {name: query[name] for name in ("status", selective) if name in query}
        found = paging.created_between(mine.filter(**where), query)
        return paging.page(found, query, plural or counted.name, show, unfiltered=mine, load=load)
    wanted = counted.matching(owner_id, query.get("status"), now=now, **period_of(query))
    return response(wanted, query, plural or counted.name, show, load=load)


def response(
    criteria: ListFilter[M],
    query: dict[str, Any],
    plural: str,
    show: Callable[[M], Mapping[str, Any]],
    *,
    load: Callable[[Sequence[M]], None] | None = None,
) -> ApiResponse:
    """The page that a query of the API asks for, with the total. Raises InvalidParameters for the cursor.

    load: reads by one query what `show` needs of other tables.
    """
    found = read(criteria, query)
    if load is not None:
        load(found.rows)
    return paging.page_response([show(row) for row in found.rows], found.total, query, plural)


@dataclass(frozen=True, slots=True)
class _Range:
    """SQL of where a page is: a position that it needs, a condition, the rows to skip, and the order."""

    condition: str
    skipped: str = "0"
    position: str | None = None
    order: str = "ORDER BY created_at DESC, id DESC"


def _range(criteria: ListFilter[Any], offset: int, cursor: Cursor | None) -> _Range:
    if cursor is not None and cursor.is_before:
        key = "(created_at, id) > (%(cursor_at)s::timestamptz, %(cursor_id)s)"
        return _Range(f"{key} AND created_at < %(end)s", order="ORDER BY created_at, id")
    if cursor is not None:
        key = "(created_at, id) < (%(cursor_at)s::timestamptz, %(cursor_id)s)"
        return _Range(f"{key} AND created_at < %(end)s")
    if offset <= MAX_PLAIN_OFFSET:
        return _Range("created_at < %(end)s", "%(offset)s::bigint")
    return _Range(
        "created_at < (SELECT before FROM place)",
        "(SELECT rest FROM place)",
        position=counting.position_sql(criteria),
    )


def _page_sql(criteria: ListFilter[Any], where: _Range) -> str:
    table, model = criteria.counted.table, criteria.counted.model
    place = f"place AS ({where.position})," if where.position else ""
    # An index has the rows of each source by their time, so the first of each are enough. Only those of one
    # millisecond are sorted: ids are not in the index, because an entry would take half as much again.
    matching = " UNION ALL ".join(
        f"""(
            SELECT created_at, id FROM {source} AND created_at >= %(start)s AND {where.condition}
            {where.order} LIMIT {where.skipped} + %(limit)s
        )"""  # noqa: S608
        for source in criteria.sources
    )
    return f"""
        WITH {counting.common_sql(criteria)}, {place}
        total AS (SELECT {counting.total_sql(criteria)} AS count),
        key AS (SELECT id FROM ({matching}) AS matching {where.order} LIMIT %(limit)s OFFSET {where.skipped})
        SELECT total.count, {rows.columns(model, "row")}
        FROM total LEFT JOIN (key JOIN {table} AS row USING (id)) ON true
        ORDER BY row.created_at DESC, row.id DESC
    """  # noqa: S608
