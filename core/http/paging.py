"""Lists: `limit` with `offset` or a cursor, newest first, an exact `total`."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, NotRequired, TypedDict, TypeVar

from django.db.models import Model, QuerySet
from rest_framework import serializers

from core import dates, errors
from core.database import merging
from core.http import fields, received
from core.http.objects import between
from core.http.responses import ApiResponse

DEFAULT_LIMIT = 20
MAX_LIMIT = 100
MAX_OFFSET = 10**12
MAX_CURSOR_LENGTH = 64
CURSORS = ("after", "before")
NEWEST_FIRST = ("-created_at", "-id")
M = TypeVar("M", bound=Model)
Q = TypeVar("Q", bound=QuerySet[Any])


Total = Annotated[int, between(0), "The number of all results."]
Limit = Annotated[int, between(1, MAX_LIMIT)]
Offset = Annotated[int, between(0, MAX_OFFSET)]


class Page(TypedDict):
    """The fields of every list beside its rows."""

    total: Total
    limit: Limit
    offset: Offset


class CursorPage(TypedDict):
    """The fields of a list that can also be read from a row on."""

    total: Total
    limit: Limit
    offset: NotRequired[Annotated[Offset, "Absent with `after` or `before`."]]


class PageQuery(serializers.Serializer[Any]):
    """The parameters of every list."""

    limit = fields.QueryInteger(
        min_value=1, max_value=MAX_LIMIT, default=DEFAULT_LIMIT, help_text="Results per page."
    )
    offset = fields.QueryInteger(min_value=0, max_value=MAX_OFFSET, default=0, help_text="Results to skip.")


def _cursor(help_text: str) -> fields.Text:
    return fields.Text(min_length=1, max_length=MAX_CURSOR_LENGTH, required=False, help_text=help_text)


class CursorPageQuery(PageQuery):
    """The parameters of a list that can also be read from a row on."""

    after = _cursor(
        "An id of the list: the older results that follow it. Pages stay the same while newer results "
        "arrive. Not with `offset`."
    )
    before = _cursor("An id of the list: the newer results just before it, newest first. Not with `offset`.")

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """Refuse a cursor beside an offset, and two cursors."""
        given = [name for name in CURSORS if name in data]
        if given and "offset" in data:
            raise serializers.ValidationError({"offset": [f"must be absent with {given[0]}"]})
        if len(given) > 1:
            raise serializers.ValidationError({"before": ["must be absent with after"]})
        return dict(super().to_internal_value(data))


class ZonedQuery(serializers.Serializer[Any]):
    """A query whose dates without a time are days of `timezone`."""

    timezone = fields.QueryTimezone(
        required=False, help_text="Of dates without a time, such as `Asia/Bangkok`. Default: UTC."
    )

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """Move the bounds that are dates from days in UTC to days of the zone."""
        values = dict(super().to_internal_value(data))
        zone = values.pop("timezone", None)
        for name in values if zone else ():
            field = self.fields[name]
            if isinstance(field, fields.QueryInstant) and dates.is_day(str(data[name])):
                values[name] = field.bound(str(data[name]), zone)
        return values

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Refuse a `start_date` after the `end_date` (both bounds as QueryInstant made them)."""
        start, end = attrs.get("start_date"), attrs.get("end_date")
        if start is not None and end is not None and start >= end:
            raise serializers.ValidationError({"start_date": ["must not be after end_date"]})
        return attrs


class PeriodPageQuery(ZonedQuery, CursorPageQuery):
    """The parameters of a list that can be limited to a period of creation."""

    start_date = fields.QueryInstant(
        required=False, help_text="Created on or after this date (of `timezone`) or instant."
    )
    end_date = fields.QueryInstant(
        end=True, required=False, help_text="Created on or before this date (of `timezone`) or instant."
    )


@dataclass(frozen=True, slots=True)
class Cursor:
    """The row next to a page, by its place in the order of the list. `is_before`: the page has newer rows."""

    created_at: datetime
    id: str
    is_before: bool

    def restrict(self, rows: Q) -> Q:
        """The rows on the page's side of this row, the nearest first."""
        # Two conditions instead of an OR, so that an index finds the first row.
        if self.is_before:
            newer = rows.filter(created_at__gte=self.created_at)
            return newer.exclude(created_at=self.created_at, id__lte=self.id).order_by("created_at", "id")
        older = rows.filter(created_at__lte=self.created_at)
        return older.exclude(created_at=self.created_at, id__gte=self.id).order_by(*NEWEST_FIRST)


def find_cursor(
    rows: QuerySet[Any], query: dict[str, Any], pk_of: Callable[[str], str] = str
) -> Cursor | None:
    """The cursor that a query gives. Raises InvalidParameters if its row is not one of `rows`.

    `rows` has no filters of the query, because a row may leave them between two pages. `pk_of` makes the key
    of a row of the id that the API shows.
    """
    name = next((name for name in CURSORS if name in query), None)
    if name is None:
        return None
    found = rows.filter(pk=pk_of(query[name])).values_list("created_at", "pk").first()
    if found is None:
        shown = received.describe(query[name], is_shown=True)
        raise errors.InvalidParameters(param=name, rule="must be an id of this list", received=shown)
    created_at, row_id = found
    return Cursor(created_at, row_id, is_before=name == "before")


def page(
    rows: QuerySet[M],
    query: dict[str, Any],
    plural: str,
    show: Callable[[M], Mapping[str, Any]],
    *,
    unfiltered: QuerySet[M] | None = None,
    cursor: Cursor | None = None,
    more: Mapping[str, str] | None = None,
    load: Callable[[Sequence[M]], None] | None = None,
    kind_columns: Sequence[str] = (),
) -> ApiResponse:
    """One page of `rows` under the key `plural`; `total` counts all that match.

    `unfiltered`: the whole list, which has the row of a cursor. Not needed for a list without cursors, or
    with a `cursor` that was found already. `more`: further fields of the response. `load`: reads by one query
    what `show` needs of other tables. `kind_columns`: see `core.database.merging`.
    """
    limit, offset = query["limit"], query["offset"]
    cursor = cursor if unfiltered is None else find_cursor(unfiltered, query)
    total = rows.count()
    start, listed = (offset, rows.order_by(*NEWEST_FIRST)) if cursor is None else (0, cursor.restrict(rows))
    found = list(merging.page(listed, kind_columns, start, start + limit)) if start < total else []
    if cursor is not None and cursor.is_before:
        found.reverse()
    if load is not None:
        load(found)
    return page_response([show(row) for row in found], total, query, plural, more)


def page_response(
    shown: Sequence[Mapping[str, Any]],
    total: int,
    query: dict[str, Any],
    plural: str,
    more: Mapping[str, str] | None = None,
) -> ApiResponse:
    """The response for rows that were read already. With a cursor it has no `offset`."""
    place = {} if any(name in query for name in CURSORS) else {"offset": query["offset"]}
    return ApiResponse.of({plural: shown, "total": total, "limit": query["limit"], **place, **(more or {})})


def created_between(rows: Q, query: dict[str, Any]) -> Q:
    """The rows created within `start_date` and `end_date`, if given."""
    if "start_date" in query:
        rows = rows.filter(created_at__gte=query["start_date"])
    if "end_date" in query:
        rows = rows.filter(created_at__lt=query["end_date"])
    return rows
