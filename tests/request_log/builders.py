"""Rows of the request log."""

from typing import Any

from core import clock, ids
from core.database import rows
from request_log.models import PREFIX, RequestRecord
from tests.conftest import Shop


def make_records(shop: Shop, times: int, **fields: Any) -> list[str]:
    """Store records of GET requests. Returns their ids, the newest first."""
    given: dict[str, Any] = {
        "created_at": clock.now(),
        "method": "GET",
        "route": "/v1/payments",
        "status": 200,
    } | fields
    made = [
        rows.new(
            RequestRecord,
            id=ids.new(PREFIX, given["created_at"]),
            merchant_id=shop.merchant.id,
            path="/v1/payments",
            duration_ms=1,
            request_id="req_x",
            **given,
        )
        for _ in range(times)
    ]
    rows.insert_together(made)
    return sorted((each.id for each in made), reverse=True)


def log_text() -> str:
    """All that the log has, also in its bodies."""
    found = RequestRecord.objects.all()
    return str([(vars(each), each.request_body, each.response_body) for each in found])
