"""Transfers of refunds and returns: each submission, inquiry and report of a bank."""

from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery

from core import money
from reconciliation.exceptions import explanations
from reconciliation.models import BankNotification
from timeline.entries import EntrySource, PaymentContext, TimelineEntry, TimelineEntryType, public_type
from transfers import explanations as texts
from transfers.models import Transfer, TransferContradiction, TransferEvent, TransferEventType


def events(type: TransferEventType, context: PaymentContext) -> EntrySource:
    """An order that is sent again, because the bank could not be reached, has several."""
    rows = TransferEvent.objects.filter(transfer__in=context.order_ids, type=type)
    return EntrySource(rows.select_related("transfer"), "created_at", _event_entry)


def notifications(context: PaymentContext) -> EntrySource:
    transfers = Transfer.objects.filter(pk=OuterRef("order_id"))
    rows = BankNotification.objects.filter(order_id__in=context.order_ids).annotate(
        purpose=Subquery(transfers.values("purpose")[:1])
    )
    return EntrySource(rows.defer("body_sealed"), "received_at", _notification_entry)


def contradictions(context: PaymentContext) -> EntrySource:
    """Contradictions about transfers and about the card charge."""
    ids = [context.payment.pk, *context.order_ids]
    rows = TransferContradiction.objects.filter(subject_id__in=ids)
    return EntrySource(rows, "created_at", _contradiction_entry)


def with_event(rows: QuerySet[Any], type: TransferEventType) -> QuerySet[Any]:
    """Annotate `event_at` and actor of the last event of this type of the transfer with the same id."""
    events = TransferEvent.objects.filter(transfer=OuterRef("pk"), type=type).order_by("-created_at")
    return with_actor(rows, events, "event_at")


def with_order(rows: QuerySet[Any]) -> QuerySet[Any]:
    """Annotate `ordered_at` and actor of the first event of the transfer with the same id.

    The approval of a held order is a later event.
    """
    events = TransferEvent.objects.filter(
        transfer=OuterRef("pk"), type__in=[TransferEventType.HELD, TransferEventType.QUEUED]
    ).order_by("created_at", "pk")
    return with_actor(rows, events, "ordered_at")


def with_actor(rows: QuerySet[Any], events: QuerySet[Any], time_column: str) -> QuerySet[Any]:
    """Annotate time, `event_actor` and `event_request_id` of the first of `events`, a subquery."""
    created_at, actor, request_id = (
        Subquery(events.values(name)[:1]) for name in ("created_at", "actor", "request_id")
    )
    annotated: QuerySet[Any] = rows.annotate(
        event_actor=actor, event_request_id=request_id, **{time_column: created_at}
    )
    return annotated


def _event_entry(event: TransferEvent) -> TimelineEntry:
    order = event.transfer
    amount = money.display(order.amount) + (" back" if order.purpose == "return" else "")
    text = texts.EVENTS[TransferEventType(event.type)]
    summary = text.format(amount=amount, answer=texts.ANSWERS.get(event.answer, ""))
    details = {f"{order.purpose}_id": order.id, "amount": order.amount}
    if event.answer:
        details["said"] = event.answer
    entry_type = public_type(order.purpose, event.type)
    return TimelineEntry(event.created_at, entry_type, summary, event.actor, event.request_id, details)


def _notification_entry(notification: Any) -> TimelineEntry:
    return TimelineEntry(
        notification.received_at,
        TimelineEntryType.NOTIFICATION,
        explanations.of_notification(notification),
        f"bank:{notification.bank}",
        notification.request_id,
        {
            "verdict": notification.result,
            "source": notification.source,
            f"{notification.purpose}_id": notification.order_id,
        },
    )


def _contradiction_entry(found: TransferContradiction) -> TimelineEntry:
    """`amount` is what we asked for, `answer_amount` what the acquirer charged, both in satang."""
    details: dict[str, Any] = {
        "subject_id": found.subject_id,
        "amount": found.amount,
        "state": found.state,
        "said": found.answer,
    }
    if found.answer_amount is not None:
        details |= {"answer_amount": found.answer_amount, "answer_currency": found.answer_currency}
    return TimelineEntry(
        found.created_at,
        TimelineEntryType.CONTRADICTION,
        explanations.contradicting_ends(found),
        found.actor,
        found.request_id,
        details,
    )
