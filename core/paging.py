"""Lists: `limit`, `offset`, newest first, an exact `total`."""

from collections.abc import Callable
from typing import Any, TypeVar

from django.db.models import Model, QuerySet
from rest_framework import serializers

from core import fields
from core.http import ApiResponse

DEFAULT_LIMIT = 20
MAX_LIMIT = 100
MAX_OFFSET = 10**12
M = TypeVar("M", bound=Model)
Q = TypeVar("Q", bound=QuerySet[Any])


class PageQuery(serializers.Serializer[Any]):
    """The parameters of every list."""

    limit = fields.QueryInteger(
        min_value=1, max_value=MAX_LIMIT, default=DEFAULT_LIMIT, help_text="Results per page."
    )
    offset = fields.QueryInteger(min_value=0, max_value=MAX_OFFSET, default=0, help_text="Results to skip.")


def page(
    rows: QuerySet[M], query: dict[str, Any], plural: str, show: Callable[[M], dict[str, Any]]
) -> ApiResponse:
    """One page of `rows` under the key `plural`; `total` counts all that match."""
    limit, offset = query["limit"], query["offset"]
    total = rows.count()
    found = rows.order_by("-created_at", "-id")[offset : offset + limit] if offset < total else []
    return page_response([show(row) for row in found], total, query, plural)


def page_response(shown: list[dict[str, Any]], total: int, query: dict[str, Any], plural: str) -> ApiResponse:
    """The response for rows that were read already."""
    return ApiResponse.of({plural: shown, "total": total, "limit": query["limit"], "offset": query["offset"]})


def created_between(rows: Q, query: dict[str, Any]) -> Q:
    """The rows created within `start_date` and `end_date`, if given."""
    if "start_date" in query:
        rows = rows.filter(created_at__gte=query["start_date"])
    if "end_date" in query:
        rows = rows.filter(created_at__lt=query["end_date"])
    return rows
