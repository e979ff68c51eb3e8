"""A record of the request log as merchants see it."""

import re
from typing import Any

from core.clock import iso
from request_log.models import RequestRecord


def request_object(record: RequestRecord) -> dict[str, Any]:
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


def full_request_object(record: RequestRecord) -> dict[str, Any]:
    """The request with its redacted bodies, as text."""
    bodies = {"request_body": record.request_body or None, "response_body": record.response_body or None}
    return request_object(record) | bodies
