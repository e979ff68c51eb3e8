"""The operations on the request log in the OpenAPI document."""

from functools import partial
from typing import Annotated, TypedDict

from core.http.objects import id_schema
from core.http.openapi import Tag, described
from core.http.paging import Limit
from core.http.scopes import Scope
from request_log.models import PREFIX
from request_log.serializers import RequestQuery
from request_log.shapes import FullRequestObject, RequestObject


class RequestList(TypedDict):
    """A page of the request log."""

    requests: list[RequestObject]
    limit: Limit
    next_after: Annotated[
        str | None,
        id_schema(PREFIX),
        "The `after` of the next page; null at the end. A page with filters may have fewer "
        "rows than `limit`, or none, and yet a next page.",
    ]


_read = partial(described, __file__, tag=Tag.SERVICE, scope=Scope.PAYMENTS_READ)

list_requests = _read("list_requests", query=RequestQuery, response=RequestList)
get_request = _read("get_request", response=FullRequestObject)
