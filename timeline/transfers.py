"""Transfers of refunds and returns: each submission, inquiry and report of a bank."""

from django.db.models import OuterRef, Subquery

from core import money
from reconciliation.exceptions import explanations
from reconciliation.models import BankNotification
from timeline import bank
from timeline.entries import EntrySource, PaymentContext, TimelineEntry, TimelineEntryType
from transfers import explanations as texts
from transfers.models import Transfer, TransferContradiction, TransferEvent, TransferEventType


def sources(context: PaymentContext) -> list[EntrySource]:
    """An order that is sent again, because the bank could not be reached, has several submissions."""
    orders = context.order_ids
    events = TransferEvent.objects.filter(transfer__in=orders).select_related("transfer")
    purpose = Transfer.objects.filter(pk=OuterRef("order_id")).values("purpose")[:1]
    reports = BankNotification.objects.filter(order_id__in=orders).annotate(purpose=Subquery(purpose))
    # Of the card charge too.
    contradictions = TransferContradiction.objects.filter(subject_id__in=[context.payment.pk, *orders])
    return [
        *(EntrySource(events.filter(type=each), "created_at", _event) for each in texts.EVENTS),
        EntrySource(
            reports.defer("body_sealed"),
            "received_at",
            lambda row: bank.notification(row, {f"{row.purpose}_id": row.order_id}),
        ),
        EntrySource(contradictions, "created_at", _contradiction),
    ]


def _event(event: TransferEvent) -> TimelineEntry:
    order = event.transfer
    amount = money.display(order.amount) + (" back" if order.purpose == "return" else "")
    text = texts.EVENTS[TransferEventType(event.type)]
    summary = text.format(amount=amount, answer=texts.ANSWERS.get(event.answer, ""))
    details = {f"{order.purpose}_id": order.id, "amount": order.amount}
    if event.answer:
        details["answer"] = event.answer
    return TimelineEntry.of(event, TimelineEntryType(f"{order.purpose}.{event.type}"), summary, details)


def _contradiction(found: TransferContradiction) -> TimelineEntry:
    """`amount` is what we asked for, `answer_amount` what the acquirer charged, both in satang."""
    names = ("subject_id", "amount", "state", "answer")
    details = {name: getattr(found, name) for name in names}
    if found.answer_amount is not None:
        details |= {"answer_amount": found.answer_amount, "answer_currency": found.answer_currency}
    summary = explanations.contradicting_ends(found)
    return TimelineEntry.of(found, TimelineEntryType.CONTRADICTION, summary, details)
