"""Read the request log."""

from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet

from core.http.paging import NEWEST_FIRST, Cursor
from core.request_context import SAFE_REQUEST_ID
from counts.lists import BEGINNING, END
from merchants.models import Merchant
from request_log import redaction
from request_log.errors import RequestNotFound
from request_log.models import HAS_PAYMENT, HAS_REQUEST_ID, RequestRecord, id_of_request

SCANNED = 10_000  # Rows that a page with filters looks at. The next page goes on where it ended.


def page(
    merchant: Merchant,
    *,
    limit: int,
    cursor: Cursor | None = None,
    start: datetime = BEGINNING,
    end: datetime = END,
    payment_id: str | None = None,
    request_id: str | None = None,
    **filters: Any,
) -> tuple[list[RequestRecord], str | None]:
    """Up to `limit` requests of the merchant, the newest first, older than the cursor, within the period.

    Then the id after which the next page begins; None at the end.

    With `filters` it looks at the next SCANNED rows only, so the page may have fewer rows and yet a next one.
    """
    found = requests_of(merchant).filter(created_at__gte=start, created_at__lt=end)
    if payment_id is not None:
        found = found.filter(HAS_PAYMENT, payment_id=payment_id)
    if request_id is not None:
        found = found.filter(with_request_id(request_id))
    found = found.order_by(*NEWEST_FIRST) if cursor is None else cursor.restrict(found)
    last = None
    if filters:
        last = found.values_list("created_at", "pk")[SCANNED - 1 : SCANNED].first()
        if last is not None:
            created_at, row_id = last
            found = found.filter(created_at__gte=created_at).exclude(created_at=created_at, pk__lt=row_id)
        found = found.filter(**filters)
    records = list(found[: limit + 1])
    next_after = records[limit - 1].pk if len(records) > limit else last and last[1]
    return records[:limit], next_after


def of_class(status_class: str) -> dict[str, int]:
    """The filter for a class of answers, such as `4xx`."""
    lowest = int(status_class[0]) * 100
    return {"status__gte": lowest, "status__lt": lowest + 100}


def requests_of(merchant: Merchant) -> "QuerySet[RequestRecord]":
    """The whole log of the merchant."""
    return RequestRecord.objects.filter(merchant_id=merchant.id)


def with_request_id(request_id: str) -> Q:
    """The condition that a client or the service gave a request this id."""
    given = HAS_REQUEST_ID & Q(request_id=redaction.request_id(request_id))
    return given | Q(pk=id_of_request(request_id))


def find(*, merchant: Merchant, request_id: str) -> RequestRecord:
    """The newest request of the merchant with this request id. Raises RequestNotFound."""
    found = requests_of(merchant).filter(with_request_id(request_id)).order_by(*NEWEST_FIRST)
    record = found.first() if SAFE_REQUEST_ID.fullmatch(request_id) else None
    if record is None:
        raise RequestNotFound()
    return record
