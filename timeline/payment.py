"""The payment itself: its creation, result and expiry."""

from datetime import timedelta
from functools import partial
from typing import Any

from django.db.models import OuterRef, Subquery
from django.db.models.functions import Coalesce
from django.utils.functional import Promise

from core import failures, money
from core.clock import iso_or_none
from payments import explanations
from payments.models import Payment, PaymentStatus
from timeline.entries import CLOCK, EntrySource, PaymentContext, TimelineEntry, TimelineEntryType
from webhooks.models import Event, EventType


def created(context: PaymentContext) -> EntrySource:
    """The actor is that of the card charge, or of the first event of a QR code's payment."""
    pending = Event.objects.filter(subject_id=OuterRef("pk"), type=EventType.PAYMENT_PENDING)
    first = pending.order_by("created_at", "id").values
    rows = Payment.objects.filter(pk=context.payment.pk).annotate(
        event_id=Subquery(first("pk")[:1]),
        actor=Coalesce("charge__actor", Subquery(first("actor")[:1])),
        request_id=Coalesce("charge__request_id", Subquery(first("request_id")[:1])),
    )
    return EntrySource(rows, "created_at", _created_entry)


def expired(context: PaymentContext) -> EntrySource:
    """The expiry, also if the sweep has not stored it yet, or if the payment succeeded after it."""
    payment, rows = context.payment, Payment.objects.filter(pk=context.payment.pk)
    succeeded_at = _events(payment, EventType.PAYMENT_SUCCEEDED).values_list("created_at", flat=True).first()
    may_expire = payment.status != PaymentStatus.FAILED and payment.expires_at is not None
    rows = rows.filter(expires_at__lte=succeeded_at or context.now) if may_expire else rows.none()
    return EntrySource(rows.select_related("qr_code"), "expires_at", _expired_entry)


def succeeded(context: PaymentContext) -> EntrySource:
    payment = context.payment
    details = {"amount": payment.received, "paid_at": iso_or_none(payment.completed_at)}
    to_entry = partial(
        _event_entry,
        TimelineEntryType.SUCCEEDED,
        explanations.PAID.format(amount=money.display(payment.received)),
        details,
    )
    return EntrySource(_events(payment, EventType.PAYMENT_SUCCEEDED), "created_at", to_entry)


def failed(context: PaymentContext) -> EntrySource:
    """Without the event of this type that reports an expiry: an expired payment never fails."""
    payment = context.payment
    events = _events(payment, EventType.PAYMENT_FAILED)
    rows = events if payment.status == PaymentStatus.FAILED else events.none()
    details = {"failure_code": payment.failure_code}
    summary = explanations.NOT_PAID.format(reason=failures.words(payment.failure_code))
    to_entry = partial(_event_entry, TimelineEntryType.FAILED, summary, details)
    return EntrySource(rows, "created_at", to_entry)


def _events(payment: Payment, type: EventType) -> Any:
    return Event.objects.filter(subject_id=payment.pk, type=type).defer("body")


def _created_entry(row: Any) -> TimelineEntry:
    details = {"amount": row.amount, "event_id": row.event_id}
    summary = explanations.REQUESTED.format(amount=money.display(row.amount))
    return TimelineEntry(
        row.created_at, TimelineEntryType.PENDING, summary, row.actor or "", row.request_id or "", details
    )


def _event_entry(
    type: TimelineEntryType, summary: str | Promise, details: dict[str, Any], event: Event
) -> TimelineEntry:
    details = details | {"event_id": event.id}
    return TimelineEntry(event.created_at, type, summary, event.actor, event.request_id, details)


def _expired_entry(payment: Payment) -> TimelineEntry:
    """The actor is who ended the QR code early, else the clock."""
    assert payment.expires_at is not None
    code = payment.qr_code
    # A QR code is valid for whole minutes. One that was ended earlier may have no stored actor.
    is_on_schedule = not (payment.expires_at - payment.created_at) % timedelta(minutes=1)
    actor = code.actor or (CLOCK if is_on_schedule else "")
    return TimelineEntry(
        payment.expires_at, TimelineEntryType.EXPIRED, explanations.EXPIRED, actor, code.request_id
    )
