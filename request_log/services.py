"""Read the request log."""

import re
from datetime import datetime
from typing import Any

from django.db.models import Q, QuerySet

from core import ids
from counts.lists import BEGINNING, END
from merchants.models import Merchant
from request_log import redaction
from request_log.errors import RequestNotFound
from request_log.models import PREFIX, RequestRecord, id_of_request

# Rows that a page with filters looks at. The next page goes on where it ended.
SCANNED = 10_000
REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}", re.ASCII)


def page(
    merchant: Merchant,
    *,
    limit: int,
    after: str | None = None,
    start: datetime = BEGINNING,
    end: datetime = END,
    request_id: str | None = None,
    payment_id: str | None = None,
    **filters: Any,
) -> tuple[list[RequestRecord], str | None]:
    """Up to `limit` requests of the merchant, the newest first, older than `after`, within the period.

    Then the id after which the next page begins; None at the end.

    With `filters` it looks at the next SCANNED rows only, so the page may have fewer rows and yet a next one.
    """
    end_id = ids.first(PREFIX, end)
    found = requests_of(merchant).filter(
        pk__gte=ids.first(PREFIX, start), pk__lt=end_id if after is None else min(after, end_id)
    )
    if request_id is not None:
        found = found.filter(with_request_id(request_id))
    if payment_id is not None:
        found = found.filter(payment_id=payment_id)
    found = found.order_by("-pk")
    last = None
    if filters:
        last = found.values_list("pk", flat=True)[SCANNED - 1 : SCANNED].first()
        found = found.filter(**filters) if last is None else found.filter(pk__gte=last, **filters)
    records = list(found[: limit + 1])
    return records[:limit], records[limit - 1].pk if len(records) > limit else last


def of_class(status_class: str) -> dict[str, int]:
    """The filter for a class of answers, such as `4xx`."""
    lowest = int(status_class[0]) * 100
    return {"status__gte": lowest, "status__lt": lowest + 100}


def requests_of(merchant: Merchant) -> "QuerySet[RequestRecord]":
    """The whole log of the merchant."""
    return RequestRecord.objects.filter(merchant_id=merchant.id)


def with_request_id(request_id: str) -> Q:
    """The condition that a client or the service gave a request this id."""
    return Q(request_id=redaction.request_id(request_id)) | Q(pk=id_of_request(request_id))


def find(*, merchant: Merchant, request_id: str) -> RequestRecord:
    """The newest request of the merchant with this request id. Raises RequestNotFound."""
    found = requests_of(merchant).filter(with_request_id(request_id)).order_by("-pk")
    record = found.first() if REQUEST_ID.fullmatch(request_id) else None
    if record is None:
        raise RequestNotFound()
    return record
