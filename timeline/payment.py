"""The payment itself: its creation, result and expiry."""

from datetime import timedelta
from functools import partial
from typing import Any

import orjson
from django.db.models import Subquery
from django.db.models.functions import Coalesce
from django.utils.functional import Promise

from core import failures, money
from core.clock import iso_or_none
from payments import explanations
from payments.models import Payment, PaymentStatus
from timeline.entries import CLOCK, EntrySource, PaymentContext, TimelineEntry, TimelineEntryType
from webhooks.models import Event, EventType


def begun(context: PaymentContext) -> list[EntrySource]:
    """The creation and the expiry, also one that is not stored yet, or before the payment succeeded.

    The actor of the creation is that of the card charge, or of the first event of a QR code's payment.
    """
    payment, rows = context.payment, Payment.objects.filter(pk=context.payment.pk)
    first = _events(payment, EventType.PAYMENT_PENDING).order_by("created_at", "id").values
    created = rows.annotate(
        event_id=Subquery(first("pk")[:1]),
        actor=Coalesce("charge__actor", Subquery(first("actor")[:1])),
        request_id=Coalesce("charge__request_id", Subquery(first("request_id")[:1])),
    )
    succeeded_at = _events(payment, EventType.PAYMENT_SUCCEEDED).values_list("created_at", flat=True).first()
    expired = rows.filter(expires_at__lte=succeeded_at or context.now).select_related("qr_code")
    if payment.status == PaymentStatus.FAILED:
        expired = expired.none()
    return [EntrySource(created, "created_at", _created), EntrySource(expired, "expires_at", _expired)]


def ended(context: PaymentContext) -> list[EntrySource]:
    """The result. An expired payment never fails, but its event has the type of a failure."""
    payment = context.payment
    paid = explanations.PAID.format(amount=money.display(payment.received))
    paid_details = {"amount": payment.received, "paid_at": iso_or_none(payment.completed_at)}
    failed = _events(payment, EventType.PAYMENT_FAILED)
    if payment.status != PaymentStatus.FAILED:
        failed = failed.none()
    to_lifted = partial(_event, TimelineEntryType.HOLD_LIFTED, explanations.HOLD_LIFTED, {})
    not_paid = explanations.NOT_PAID.format(reason=failures.words(payment.failure_code))
    to_success = partial(_event, TimelineEntryType.SUCCEEDED, paid, paid_details)
    to_failure = partial(_event, TimelineEntryType.FAILED, not_paid, {"failure_code": payment.failure_code})
    return [
        EntrySource(_events(payment, EventType.PAYMENT_SUCCEEDED), "created_at", to_success),
        EntrySource(failed, "created_at", to_failure),
        EntrySource(_events(payment, EventType.PAYMENT_HOLD_LIFTED), "created_at", to_lifted),
        EntrySource(_events(payment, EventType.PAYMENT_FEE_KNOWN).defer(None), "created_at", _fee),
    ]


def _events(payment: Payment, type: EventType) -> Any:
    return Event.objects.filter(subject_id=payment.pk, type=type).defer("packed_body")


def _event(
    type: TimelineEntryType, summary: str | Promise, details: dict[str, Any], event: Event
) -> TimelineEntry:
    return TimelineEntry.of(event, type, summary, details | {"event_id": event.id})


def _fee(event: Event) -> TimelineEntry:
    """What the event said: the fee may have changed since."""
    data = orjson.loads(event.body)["data"]
    fees = {name: data[name] for name in ("fee", "fee_vat", "net")}
    summary = explanations.FEE_TAKEN.format(amount=money.display(fees["fee"] + fees["fee_vat"]))
    return _event(TimelineEntryType.FEE_KNOWN, summary, fees, event)


def _created(row: Any) -> TimelineEntry:
    summary = explanations.REQUESTED.format(amount=money.display(row.amount))
    details = {"amount": row.amount, "event_id": row.event_id}
    return TimelineEntry.of(row, TimelineEntryType.PENDING, summary, details)


def _expired(row: Any) -> TimelineEntry:
    """The actor is who ended the QR code early, else the clock."""
    code = row.qr_code
    # A QR code is valid for whole minutes. One that was ended earlier may have no stored actor.
    is_on_schedule = not (row.expires_at - row.created_at) % timedelta(minutes=1)
    actor, type_ = code.actor or (CLOCK if is_on_schedule else ""), TimelineEntryType.EXPIRED
    return TimelineEntry.of(row, type_, explanations.EXPIRED, {}, actor=actor, request_id=code.request_id)
