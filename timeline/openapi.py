"""The timeline in the OpenAPI document."""

from typing import Annotated, Any

from core.objects import one_of
from core.openapi import Answer, Operation, Tag
from core.paging import Page, PageQuery
from core.scopes import Scope
from payments.errors import PaymentNotFound
from payments.openapi import PAYMENT
from reconciliation.models import ReportSource
from timeline.entries import TimelineEntryType
from timeline.shapes import TimelineEntry


class Timeline(Page):
    """A page of a timeline."""

    timeline: list[TimelineEntry]
    sources: Annotated[
        list[Annotated[str, one_of(ReportSource)]],
        "How the bank reported the money that paid, or else the money that did not fit.",
    ]


_EVENT_ID = "evt_0oDFPazyVRoGTTDIuRe7QK7m3b4"
_ATTEMPT = {
    "at": "2026-11-21T03:05:42.318Z",
    "type": TimelineEntryType.ATTEMPT.value,
    "actor": "clock",
    "request_id": None,
    "summary": "payment.succeeded is sent: 200 in 87 ms.",
    "details": {
        "event": "payment.succeeded",
        "event_id": _EVENT_ID,
        "webhook_id": "wh_0oDFPYtN3GjvR8mKc2QxLpWzHsB",
        "delivery_id": "dlv_0oDFPb5YgQm2vHc8KpXtR4sWnZe",
        "number": 1,
        "http_status": 200,
        "duration_ms": 87,
        "error": None,
        "next_attempt_at": None,
    },
}
_PAID = {
    "at": "2026-11-21T03:05:42.310Z",
    "type": TimelineEntryType.SUCCEEDED.value,
    "actor": "bank:sandbox",
    "request_id": "req_4d6ad45db09031ecb0c04923",
    "summary": "Paid: 1,500.00 THB.",
    "details": {"amount": 150_000, "paid_at": PAYMENT["completed_at"], "event_id": _EVENT_ID},
}
_NOTICE = {
    "at": "2026-11-21T03:05:42.304Z",
    "type": TimelineEntryType.NOTIFICATION.value,
    "actor": "bank:sandbox",
    "request_id": "req_4d6ad45db09031ecb0c04923",
    "summary": "The bank reports: 1,500.00 THB received, paid its payment.",
    "details": {
        "verdict": "new",
        "source": "callback",
        "receipt_id": "rcp_0oDFPauQc2XhYkVb7TfJ9mRwZsN",
        "bank_transaction_id": "2026112100000042",
        "kind": "credit",
        "amount": 150_000,
        "paid_at": PAYMENT["completed_at"],
        "outcome": "applied",
        "resolution": None,
        "payer_account": "xxxxxx7890",
    },
}
_PENDING = {
    "at": PAYMENT["created_at"],
    "type": TimelineEntryType.PENDING.value,
    "actor": "key:ab12cd34",
    "request_id": "order-17.till-3",
    "summary": "1,500.00 THB requested.",
    "details": {"amount": 150_000, "event_id": "evt_0oDFPXw3nKc8RtYb5VhQz2mJsLd"},
}
TIMELINE: dict[str, Any] = {
    "timeline": [_ATTEMPT, _PAID, _NOTICE, _PENDING],
    "sources": ["callback"],
    "total": 4,
    "limit": 20,
    "offset": 0,
}

list_ = Operation(
    name="get_payment_timeline",
    tag=Tag.PAYMENTS,
    scope=Scope.PAYMENTS_READ,
    summary="What happened to a payment",
    description="All entries, newest first: inquiries to the bank or the card's acquirer, their reports and "
    "results, also of money that came twice, late or in another amount, and the decisions about it; open "
    "money of the same amount with an unknown reference; refunds with their orders and inquiries; attempts, "
    "redeliveries and held deliveries of your webhooks. Each entry names its actor and request.",
    query=PageQuery,
    response=Answer(Timeline, TIMELINE),
    errors=(PaymentNotFound,),
)
