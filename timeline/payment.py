"""The payment itself: its birth and what became of it, by its events; its expiry by the clock."""

from datetime import timedelta
from functools import partial
from typing import Any

from django.db.models import OuterRef, Subquery
from django.db.models.functions import Coalesce

from core import money
from core.clock import iso_or_none
from payments.models import Payment, PaymentStatus
from timeline.entries import CLOCK, EntrySource, PaymentContext, TimelineEntry, TimelineEntryType
from webhooks.event_types import EventType
from webhooks.models import Event

SUCCEEDED_EVENTS = [EventType.PAYMENT_SUCCEEDED]
FAILED_EVENTS = [EventType.PAYMENT_FAILED]


def created(context: PaymentContext) -> EntrySource:
    """Who asked, its charge says; of a code its first event."""
    pending = Event.objects.filter(subject_id=OuterRef("pk"), type=EventType.PAYMENT_PENDING)
    first = pending.order_by("created_at", "id").values
    rows = Payment.objects.filter(pk=context.payment.pk).annotate(
        event_id=Subquery(first("pk")[:1]),
        actor=Coalesce("charge__actor", Subquery(first("actor")[:1])),
        request_id=Coalesce("charge__request_id", Subquery(first("request_id")[:1])),
    )
    return EntrySource(rows, "created_at", _created_entry)


def expired(context: PaymentContext) -> EntrySource:
    """One, or none: true by the clock, so that it stands here before any sweep has written it down."""
    payment, rows = context.payment, Payment.objects.filter(pk=context.payment.pk)
    over = _succeeded_at(payment) or context.now
    has_expired = payment.status != PaymentStatus.FAILED and payment.expires_at is not None
    rows = rows.filter(expires_at__lte=over) if has_expired else rows.none()
    return EntrySource(rows.select_related("qr_code"), "expires_at", _expired_entry)


def succeeded(context: PaymentContext) -> EntrySource:
    payment = context.payment
    details = {"amount": payment.received, "paid_at": iso_or_none(payment.completed_at)}
    to_entry = partial(
        _event_entry, TimelineEntryType.SUCCEEDED, f"Paid: {money.display(payment.received)}.", details
    )
    return EntrySource(_events(payment, SUCCEEDED_EVENTS), "created_at", to_entry)


def failed(context: PaymentContext) -> EntrySource:
    """The event of this name also tells of expiry, after which a payment never fails."""
    payment = context.payment
    rows = _events(payment, FAILED_EVENTS if payment.status == PaymentStatus.FAILED else [])
    details = {"failure_code": payment.failure_code}
    return EntrySource(
        rows, "created_at", partial(_event_entry, TimelineEntryType.FAILED, "The payment failed.", details)
    )


def _events(payment: Payment, types: list[EventType]) -> Any:
    return Event.objects.filter(subject_id=payment.pk, type__in=types).defer("body")


def _created_entry(row: Any) -> TimelineEntry:
    details = {"amount": row.amount, "event_id": row.event_id}
    summary = f"{money.display(row.amount)} requested."
    return TimelineEntry(
        row.created_at, TimelineEntryType.PENDING, summary, row.actor or "", row.request_id or "", details
    )


def _event_entry(
    type: TimelineEntryType, summary: str, details: dict[str, Any], event: Event
) -> TimelineEntry:
    rows = {**details, "event_id": event.id}
    return TimelineEntry(event.created_at, type, summary, event.actor, event.request_id, rows)


def _succeeded_at(payment: Payment) -> Any:
    """When the payment succeeded, if it did: what had expired until then had expired."""
    return _events(payment, SUCCEEDED_EVENTS).values_list("created_at", flat=True).first()


def _expired_entry(payment: Payment) -> TimelineEntry:
    """By whoever ended it before its time, else by the clock."""
    assert payment.expires_at is not None
    code = payment.qr_code
    # Codes live for whole minutes. Who ended one sooner was not always kept.
    in_time = not (payment.expires_at - payment.created_at) % timedelta(minutes=1)
    actor = code.actor or (CLOCK if in_time else "")
    summary = "The code can no longer be paid."
    return TimelineEntry(payment.expires_at, TimelineEntryType.EXPIRED, summary, actor, code.request_id)
