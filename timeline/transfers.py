"""Orders to send money, for refunds and for what did not fit: each telling, each question, what banks say."""

from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery

from core import money
from reconciliation.models import BankNotification, NotificationResult
from timeline.entries import EntrySource, PaymentContext, TimelineEntry, TimelineEntryType, public_type
from transfers.models import Transfer, TransferContradiction, TransferEvent, TransferEventType

EVENT_TEXT = {
    TransferEventType.SUBMITTED: "Sent the order for {amount} to the bank.",
    TransferEventType.NOT_SENT: "The bank could not be reached; the order will be sent again.",
    TransferEventType.INQUIRY: "Inquiry about {amount}: {said}.",
}
ANSWER_TEXT = {
    "succeeded": "the bank reports success",
    "failed": "the bank reports failure",
    "returned": "the bank reports a return",
    "processing": "the bank is processing it",
    "unknown": "no usable answer",
    "not_sent": "the bank could not be reached",
}
NOTIFICATION_RESULT_TEXT = {
    NotificationResult.NEW: "The bank reported the result of an order.",
    NotificationResult.REPEAT: "The bank repeated the result of an order.",
    NotificationResult.CONFLICT: "The bank reported a result that contradicts our record of an order.",
}


def submitted(context: PaymentContext) -> EntrySource:
    """Again where the bank could not be reached the time before."""
    return _events(context, TransferEventType.SUBMITTED)


def not_sent(context: PaymentContext) -> EntrySource:
    return _events(context, TransferEventType.NOT_SENT)


def inquiries(context: PaymentContext) -> EntrySource:
    return _events(context, TransferEventType.INQUIRY)


def notifications(context: PaymentContext) -> EntrySource:
    events = Transfer.objects.filter(pk=OuterRef("order_id"))
    rows = BankNotification.objects.filter(order_id__in=context.order_ids).annotate(
        purpose=Subquery(events.values("purpose")[:1])
    )
    return EntrySource(rows.defer("body_sealed"), "received_at", _notification_entry)


def contradictions(context: PaymentContext) -> EntrySource:
    """Also of a card charge."""
    ids = [context.payment.pk, *context.order_ids]
    return EntrySource(
        TransferContradiction.objects.filter(subject_id__in=ids), "created_at", _contradiction_entry
    )


def with_event(rows: QuerySet[Any], type: TransferEventType) -> QuerySet[Any]:
    """With the last such step of the transfer of the same id: `stepped_at`, and who caused it."""
    events = TransferEvent.objects.filter(transfer=OuterRef("pk"), type=type).order_by("-created_at")
    return _with_actor(rows, events, "stepped_at")


def with_order(rows: QuerySet[Any]) -> QuerySet[Any]:
    """With the step that made the transfer of the same id: `ordered_at`, and who caused it.

    A step of its own says later that a held order was approved.
    """
    events = TransferEvent.objects.filter(
        transfer=OuterRef("pk"), type__in=[TransferEventType.HELD, TransferEventType.QUEUED]
    ).order_by("created_at", "pk")
    return _with_actor(rows, events, "ordered_at")


def _with_actor(rows: QuerySet[Any], events: QuerySet[TransferEvent], at: str) -> QuerySet[Any]:
    when, actor, request_id = (
        Subquery(events.values(name)[:1]) for name in ("created_at", "actor", "request_id")
    )
    known: QuerySet[Any] = rows.annotate(event_actor=actor, event_request_id=request_id, **{at: when})
    return known


def _events(context: PaymentContext, type: TransferEventType) -> EntrySource:
    rows = TransferEvent.objects.filter(transfer__in=context.order_ids, type=type)
    return EntrySource(rows.select_related("transfer"), "created_at", _event_entry)


def _event_entry(event: TransferEvent) -> TimelineEntry:
    order = event.transfer
    amount = money.display(order.amount) + (" back" if order.purpose == "return" else "")
    summary = EVENT_TEXT[TransferEventType(event.type)].format(
        amount=amount, said=ANSWER_TEXT.get(event.answer, "")
    )
    details = {f"{order.purpose}_id": order.id, "amount": order.amount}
    if event.answer:
        details["said"] = event.answer
    entry_type = public_type(order.purpose, event.type)
    return TimelineEntry(event.created_at, entry_type, summary, event.actor, event.request_id, details)


def _notification_entry(notification: Any) -> TimelineEntry:
    summary, actor = (
        NOTIFICATION_RESULT_TEXT[NotificationResult(notification.result)],
        f"bank:{notification.bank}",
    )
    details = {
        "verdict": notification.result,
        "source": notification.source,
        f"{notification.purpose}_id": notification.order_id,
    }
    return TimelineEntry(
        notification.received_at,
        TimelineEntryType.NOTIFICATION,
        summary,
        actor,
        notification.request_id,
        details,
    )


def _contradiction_entry(found: TransferContradiction) -> TimelineEntry:
    """The amount is what was asked for here, in satang; `answer_amount` what the acquirer charged."""
    who = found.route.partition(":")[2]
    summary = f"{money.display(found.amount)} are {found.state} here, and {who} says: {found.answer}."
    details: dict[str, Any] = {
        "subject_id": found.subject_id,
        "amount": found.amount,
        "state": found.state,
        "said": found.answer,
    }
    if found.answer_amount is not None:
        summary = (
            f"{money.display(found.amount)} were asked for, and {who} charged another amount or currency."
        )
        details |= {"answer_amount": found.answer_amount, "answer_currency": found.answer_currency}
    return TimelineEntry(
        found.created_at, TimelineEntryType.CONTRADICTION, summary, found.actor, found.request_id, details
    )
