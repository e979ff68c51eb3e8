"""Refunds of the payment, each with every step it took."""

from functools import partial
from typing import Any

from django.db.models import F, OuterRef, QuerySet, Subquery

from core import money
from payments.models import PaymentStatus as Payments
from refunds.models import Refund, RefundStatus
from timeline import transfers
from timeline.entries import EntrySource, PaymentContext, TimelineEntry, TimelineEntryType
from transfers.models import TransferEventType
from webhooks.models import Event


def created(context: PaymentContext) -> EntrySource:
    """Of a refund by which the bank took the money back itself, nobody asked."""
    to_entry = partial(
        _refund_entry, TimelineEntryType.REFUND_CREATED, "created_at", "Refund of {amount} created."
    )
    rows = _refunds(context).filter(reversal_id__isnull=True)
    return EntrySource(
        rows.annotate(event_actor=F("actor"), event_request_id=F("request_id")), "created_at", to_entry
    )


def destination_set(context: PaymentContext) -> EntrySource:
    """Of a refund that waited for an account, by whoever named it."""
    rows = transfers.with_order(_refunds(context)).filter(ordered_at__gt=F("created_at"))
    to_entry = partial(
        _refund_entry,
        TimelineEntryType.REFUND_DESTINATION_SET,
        "ordered_at",
        "The destination of the refund of {amount} is set.",
    )
    return EntrySource(rows, "ordered_at", to_entry)


def completed(context: PaymentContext) -> EntrySource:
    to_entry = partial(
        _refund_entry, TimelineEntryType.REFUND_COMPLETED, "completed_at", "Refund of {amount} completed."
    )
    rows = _with_actor(
        _refunds(context).filter(status=RefundStatus.COMPLETED), TimelineEntryType.REFUND_COMPLETED
    )
    return EntrySource(rows, "completed_at", to_entry)


def failed(context: PaymentContext) -> EntrySource:
    to_entry = partial(
        _refund_entry,
        TimelineEntryType.REFUND_FAILED,
        "updated_at",
        "Refund of {amount} failed: {failure_code}.",
    )
    rows = _with_actor(_refunds(context).filter(status=RefundStatus.FAILED), TimelineEntryType.REFUND_FAILED)
    return EntrySource(rows, "updated_at", to_entry)


def canceled(context: PaymentContext) -> EntrySource:
    to_entry = partial(
        _refund_entry, TimelineEntryType.REFUND_CANCELED, "updated_at", "Refund of {amount} canceled."
    )
    rows = _refunds(context).filter(status=RefundStatus.CANCELED)
    known = rows.annotate(event_actor=F("cancel_actor"), event_request_id=F("cancel_request_id"))
    return EntrySource(known, "updated_at", to_entry)


def returned(context: PaymentContext) -> EntrySource:
    to_entry = partial(
        _refund_entry, TimelineEntryType.REFUND_RETURNED, "returned_at", "Refund of {amount} returned."
    )
    rows = _refunds(context).filter(returned_at__isnull=False)
    return EntrySource(transfers.with_event(rows, TransferEventType.RETURNED), "returned_at", to_entry)


def payment_refunded(context: PaymentContext) -> EntrySource:
    """The payment is refunded, by the last refund of it."""
    payment, rows = context.payment, _refunds(context).filter(status=RefundStatus.COMPLETED)
    last = rows.order_by("-completed_at", "-pk") if payment.status == Payments.REFUNDED else rows.none()
    with_actor = _with_actor(rows.filter(pk__in=last.values("pk")[:1]), TimelineEntryType.REFUND_COMPLETED)
    return EntrySource(
        with_actor, "completed_at", partial(_payment_refunded_entry, money.display(payment.received))
    )


def _refunds(context: PaymentContext) -> QuerySet[Any]:
    rows: QuerySet[Any] = Refund.objects.filter(payment=context.payment)
    return rows


def _with_actor(rows: QuerySet[Any], type: TimelineEntryType) -> QuerySet[Any]:
    """By the event of the same name, which says who caused it."""
    event = Event.objects.filter(subject_id=OuterRef("pk"), type=type.value)
    known: QuerySet[Any] = rows.annotate(
        event_actor=Subquery(event.values("actor")[:1]),
        event_request_id=Subquery(event.values("request_id")[:1]),
    )
    return known


def _refund_entry(type: TimelineEntryType, at: str, summary: str, row: Any) -> TimelineEntry:
    rows = summary.format(amount=money.display(row.amount), failure_code=row.failure_code)
    details = {"refund_id": row.id, "amount": row.amount}
    if type in (TimelineEntryType.REFUND_CREATED, TimelineEntryType.REFUND_FAILED):
        details |= (
            {"reason": row.reason}
            if type == TimelineEntryType.REFUND_CREATED
            else {"failure_code": row.failure_code}
        )
    actor, request_id = getattr(row, "event_actor", None), getattr(row, "event_request_id", None)
    return TimelineEntry(getattr(row, at), type, rows, actor or "", request_id or "", details)


def _payment_refunded_entry(amount: str, row: Any) -> TimelineEntry:
    summary = f"Fully refunded: {amount}."
    details = {"refund_id": row.id}
    return TimelineEntry(
        row.completed_at,
        TimelineEntryType.REFUNDED,
        summary,
        row.event_actor or "",
        row.event_request_id or "",
        details,
    )
