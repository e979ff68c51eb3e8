"""The payment itself: its birth and what became of it, by its events; its expiry by the clock."""

from datetime import timedelta
from functools import partial
from typing import Any

from django.db.models import OuterRef, Subquery
from django.db.models.functions import Coalesce

from console.timeline.entries import CLOCK, Entry, Moment, Subject, Type
from core import money
from core.clock import iso_or_none
from payments.models import Payment, Status
from webhooks.event_types import EventType
from webhooks.models import Event

PAID = [EventType.PAYMENT_SUCCEEDED]
FAILED = [EventType.PAYMENT_FAILED]


def births(subject: Subject) -> Moment:
    """Who asked, its charge says; of a code its first event."""
    pending = Event.objects.filter(subject_id=OuterRef("pk"), type=EventType.PAYMENT_PENDING)
    first = pending.order_by("created_at", "id").values
    rows = Payment.objects.filter(pk=subject.payment.pk).annotate(
        event_id=Subquery(first("pk")[:1]),
        actor=Coalesce("charge__asked_by", Subquery(first("actor")[:1])),
        request_id=Coalesce("charge__asked_request_id", Subquery(first("request_id")[:1])),
    )
    return Moment(rows, "created_at", _born)


def expiries(subject: Subject) -> Moment:
    """One, or none: true by the clock, so that it stands here before any sweep has written it down."""
    payment, rows = subject.payment, Payment.objects.filter(pk=subject.payment.pk)
    over = _ended_at(payment) or subject.now
    has_expired = payment.status != Status.FAILED and payment.expires_at is not None
    rows = rows.filter(expires_at__lte=over) if has_expired else rows.none()
    return Moment(rows.select_related("qr_code"), "expires_at", _expired)


def successes(subject: Subject) -> Moment:
    payment = subject.payment
    details = {"amount": payment.received, "paid_at": iso_or_none(payment.completed_at)}
    tell = partial(_told, Type.SUCCEEDED, f"Paid: {money.display(payment.received)}.", details)
    return Moment(_events(payment, PAID), "created_at", tell)


def failures(subject: Subject) -> Moment:
    """The event of this name also tells of expiry, after which a payment never fails."""
    payment = subject.payment
    rows = _events(payment, FAILED if payment.status == Status.FAILED else [])
    details = {"failure_code": payment.failure_code}
    return Moment(rows, "created_at", partial(_told, Type.FAILED, "The payment failed.", details))


def _events(payment: Payment, types: list[EventType]) -> Any:
    return Event.objects.filter(subject_id=payment.pk, type__in=types).defer("body")


def _born(row: Any) -> Entry:
    details = {"amount": row.amount, "event_id": row.event_id}
    summary = f"{money.display(row.amount)} is asked for."
    return Entry(row.created_at, Type.PENDING, summary, row.actor or "", row.request_id or "", details)


def _told(type: Type, summary: str, details: dict[str, Any], event: Event) -> Entry:
    said = {**details, "event_id": event.id}
    return Entry(event.created_at, type, summary, event.actor, event.request_id, said)


def _ended_at(payment: Payment) -> Any:
    """When the payment succeeded, if it did: what had expired until then had expired."""
    return _events(payment, PAID).values_list("created_at", flat=True).first()


def _expired(payment: Payment) -> Entry:
    """By whoever ended it before its time, else by the clock."""
    assert payment.expires_at is not None
    code = payment.qr_code
    # Codes live for whole minutes. Who ended one sooner was not always kept.
    in_time = not (payment.expires_at - payment.created_at) % timedelta(minutes=1)
    actor = code.ended_by or (CLOCK if in_time else "")
    summary = "The code can no longer be paid."
    return Entry(payment.expires_at, Type.EXPIRED, summary, actor, code.ended_request_id)
