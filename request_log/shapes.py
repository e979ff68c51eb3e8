"""A record of the request log as merchants see it."""

import re
from typing import Annotated, TypedDict

from core.clock import iso
from core.http.objects import Instant, PaymentId, between, id_schema, one_of, up_to
from request_log.models import PREFIX, Idempotency, RequestRecord


class RequestObject(TypedDict):
    """A request of the merchant, without its bodies."""

    id: Annotated[str, id_schema(PREFIX)]
    request_id: Annotated[
        str, {"pattern": "^[A-Za-z0-9._\\[\\]-]{1,64}$"}, "As in the header `X-Request-Id`."
    ]
    method: Annotated[str, up_to(8)]
    route: Annotated[str, up_to(120), "The path with names in place of ids: `/v1/payments/{payment_id}`."]
    path: Annotated[str, up_to(500), "With the query. Long numbers are masked."]
    status: Annotated[int, between(100, 599)]
    error_code: Annotated[str | None, up_to(60)]
    duration_ms: Annotated[int, between(0)]
    key: Annotated[str | None, up_to(16), "The public part of the key."]
    idempotency: Annotated[
        str | None,
        one_of([each.value for each in Idempotency if each.value]),
        "Of a POST with an Idempotency-Key. replayed: it got the answer of the first.",
    ]
    payment_id: Annotated[PaymentId | None, "The payment in the path or in a body of the request."]
    address: Annotated[str | None, up_to(64), "Of the client."]
    created_at: Annotated[Instant, "When the request began."]


class FullRequestObject(RequestObject):
    """A request of the merchant with its bodies."""

    request_body: Annotated[
        str | None,
        "As text, without secrets, with masked names and accounts; the first 4,096 characters. Of "
        "many in a second only the first 10, and the first 10 refused ones, have it; others the size.",
    ]
    response_body: Annotated[str | None, "As the body of the request."]


def request_object(record: RequestRecord) -> RequestObject:
    """The request without its bodies, as lists have it."""
    return {
        "id": record.id,
        "request_id": record.request_id,
        "method": record.method,
        "route": re.sub(r"<str:(\w+)>", r"{\1}", record.route),
        "path": record.path,
        "status": record.status,
        "error_code": record.error_code or None,
        "duration_ms": record.duration_ms,
        "key": record.key_id or None,
        "idempotency": record.idempotency or None,
        "payment_id": record.payment_id or None,
        "address": record.address or None,
        "created_at": iso(record.created_at),
    }


def stored_route(shown: str) -> str:
    """The column value of a route as merchants and the reference write it: `/v1/payments/{payment_id}`."""
    return re.sub(r"{(\w+)}", r"<str:\1>", shown)


def full_request_object(record: RequestRecord) -> FullRequestObject:
    """The request with its redacted bodies, as text."""
    return {
        **request_object(record),
        "request_body": record.request_body or None,
        "response_body": record.response_body or None,
    }
