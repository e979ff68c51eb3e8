"""The operations on the request log in the OpenAPI document."""

from functools import partial
from typing import Annotated, TypedDict

from core.objects import id_schema
from core.openapi import Answer, Operation, Tag
from core.paging import Limit
from core.scopes import Scope
from request_log.errors import RequestNotFound
from request_log.recorder import PREFIX
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


_read = partial(Operation, tag=Tag.SERVICE, scope=Scope.PAYMENTS_READ)
REQUEST = {
    "id": "rlg_0oDFPazyVRoGTTDIuRe7QK7m3b4",
    "request_id": "req_5f0c2b7d9e1a4c3b8f6d7e21",
    "method": "POST",
    "route": "/v1/qr-codes",
    "path": "/v1/qr-codes",
    "status": 400,
    "error_code": "invalid_amount",
    "duration_ms": 3,
    "key": "ab12cd34",
    "idempotency": "first",
    "payment_id": None,
    "address": "203.0.113.7",
    "created_at": "2026-11-21T03:04:05.123Z",
}
BODIES = {
    "request_body": '{"amount":0,"currency":"THB"}',
    "response_body": '{"error":{"code":"invalid_amount","type":"validation_error","param":"amount"}}',
}
list_requests = _read(
    name="list_requests",
    summary="List your requests",
    description="Your requests of the last 30 days, newest first. A request appears about a second after it "
    "ended, if its key was valid. Some may be missing when the service is very busy.",
    query=RequestQuery,
    response=Answer(RequestList, {"requests": [REQUEST], "limit": 20, "next_after": None}),
)
get_request = _read(
    name="get_request",
    summary="Retrieve a request",
    description="With both bodies. If you sent the same `X-Request-Id` more than once, the newest request.",
    response=Answer(FullRequestObject, REQUEST | BODIES),
    errors=(RequestNotFound,),
)
