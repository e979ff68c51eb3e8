"""Transfers of refunds and returns: each submission, inquiry and report of a bank."""

from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery
from django.utils.translation import gettext_lazy as _

from core import money
from reconciliation.models import BankNotification, NotificationResult
from timeline.entries import EntrySource, PaymentContext, TimelineEntry, TimelineEntryType, public_type
from transfers.models import Transfer, TransferContradiction, TransferEvent, TransferEventType

EVENT_TEXT = {
    TransferEventType.SUBMITTED: _("Sent the order for {amount} to the bank."),
    TransferEventType.NOT_SENT: _("The bank could not be reached; the order will be sent again."),
    TransferEventType.INQUIRY: _("Inquiry about {amount}: {answer}."),
}
ANSWER_TEXT = {
    "succeeded": _("the bank reports success"),
    "failed": _("the bank reports failure"),
    "returned": _("the bank reports a return"),
    "processing": _("the bank is processing it"),
    "unknown": _("no usable answer"),
    "not_sent": _("the bank could not be reached"),
}
NOTIFICATION_RESULT_TEXT = {
    NotificationResult.NEW: _("The bank reported the result of an order."),
    NotificationResult.REPEAT: _("The bank repeated the result of an order."),
    NotificationResult.CONFLICT: _("The bank reported a result that contradicts our record of an order."),
}


def submitted(context: PaymentContext) -> EntrySource:
    """Several entries for an order that is sent again because the bank could not be reached."""
    return _events(context, TransferEventType.SUBMITTED)


def not_sent(context: PaymentContext) -> EntrySource:
    return _events(context, TransferEventType.NOT_SENT)


def inquiries(context: PaymentContext) -> EntrySource:
    return _events(context, TransferEventType.INQUIRY)


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


def _events(context: PaymentContext, type: TransferEventType) -> EntrySource:
    rows = TransferEvent.objects.filter(transfer__in=context.order_ids, type=type)
    return EntrySource(rows.select_related("transfer"), "created_at", _event_entry)


def _event_entry(event: TransferEvent) -> TimelineEntry:
    order = event.transfer
    amount = money.display(order.amount) + (" back" if order.purpose == "return" else "")
    text = EVENT_TEXT[TransferEventType(event.type)]
    summary = text.format(amount=amount, answer=ANSWER_TEXT.get(event.answer, ""))
    details = {f"{order.purpose}_id": order.id, "amount": order.amount}
    if event.answer:
        details["said"] = event.answer
    entry_type = public_type(order.purpose, event.type)
    return TimelineEntry(event.created_at, entry_type, summary, event.actor, event.request_id, details)


def _notification_entry(notification: Any) -> TimelineEntry:
    return TimelineEntry(
        notification.received_at,
        TimelineEntryType.NOTIFICATION,
        NOTIFICATION_RESULT_TEXT[NotificationResult(notification.result)],
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
    amount, counterparty = money.display(found.amount), found.route.partition(":")[2]
    summary = _("%(amount)s are %(state)s here, and %(counterparty)s says: %(answer)s.") % {
        "amount": amount,
        "state": found.state,
        "counterparty": counterparty,
        "answer": found.answer,
    }
    details: dict[str, Any] = {
        "subject_id": found.subject_id,
        "amount": found.amount,
        "state": found.state,
        "said": found.answer,
    }
    if found.answer_amount is not None:
        summary = _("%(amount)s were asked for, and %(counterparty)s charged another amount or currency.") % {
            "amount": amount,
            "counterparty": counterparty,
        }
        details |= {"answer_amount": found.answer_amount, "answer_currency": found.answer_currency}
    return TimelineEntry(
        found.created_at, TimelineEntryType.CONTRADICTION, summary, found.actor, found.request_id, details
    )
