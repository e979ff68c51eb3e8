"""Refunds of the payment, and returns of money that did not fit, each with its steps."""

from typing import Any

from django.db.models import F, OuterRef, QuerySet, Subquery
from django.utils.functional import Promise

from core import failures, money
from payments.models import PaymentStatus
from reconciliation.exceptions import explanations
from reconciliation.models import Resolution, ResolutionType, Return, ReturnStatus
from refunds import explanations as of_refunds
from refunds.models import Refund, RefundStatus
from timeline.entries import EntrySource, PaymentContext, TimelineEntry, TimelineEntryType
from transfers import explanations as of_transfers
from transfers.models import TransferEvent, TransferEventType
from webhooks.models import Event


def begun(context: PaymentContext) -> list[EntrySource]:
    """Refunds, without those that only show a bank's reversal, because no request created them."""
    refunds = Refund.objects.filter(payment=context.payment)
    # The approval of a held order is a later event.
    orders = TransferEvent.objects.filter(
        transfer=OuterRef("pk"), type__in=[TransferEventType.HELD, TransferEventType.QUEUED]
    ).order_by("created_at", "pk")
    # Refunds that waited for an account, with the actor who named it.
    waited = _with_actor(refunds, orders).filter(event_at__gt=F("created_at"))
    created, named = TimelineEntryType.REFUND_CREATED, TimelineEntryType.REFUND_DESTINATION_SET
    own = refunds.filter(reversal_id__isnull=True)
    return [
        _source(own, "created_at", created, of_refunds.CREATED, "reason", by=""),
        _source(waited, "event_at", named, of_refunds.DESTINATION_SET),
    ]


def ended(context: PaymentContext) -> list[EntrySource]:
    return [*_ended_returns(context), *_ended_refunds(context)]


def _ended_returns(context: PaymentContext) -> list[EntrySource]:
    returns, texts = Return.objects.filter(pk__in=context.return_ids), explanations.RETURNS
    completed, sent = returns.filter(status=ReturnStatus.COMPLETED), returns.filter(is_manual=False)
    # Staff sent this money at the bank themselves. The actor is in the resolution before the completion.
    by_hand = Resolution.objects.filter(
        subject_id=OuterRef("bank_transaction_id"),
        type=ResolutionType.SENT_BACK_BY_HAND,
        created_at__lte=OuterRef("completed_at"),
    ).order_by("-created_at", "-pk")
    completed_type, completed_text = TimelineEntryType.RETURN_COMPLETED, texts[ReturnStatus.COMPLETED]
    ordered = _with_event(completed.filter(is_manual=False), TransferEventType.SUCCEEDED)
    manual = _with_actor(completed.filter(is_manual=True), by_hand)
    failed = _with_event(returns.filter(status=ReturnStatus.FAILED), TransferEventType.FAILED)
    # Before the bank had the order: it reversed the money, or staff ended or rejected the return.
    canceled = _with_event(sent.filter(status=ReturnStatus.CANCELED), TransferEventType.CANCELED)
    returned = _with_event(returns.filter(returned_at__isnull=False), TransferEventType.RETURNED)
    failure, cancelation = texts[ReturnStatus.FAILED], texts[ReturnStatus.CANCELED]
    return [
        _source(ordered, "completed_at", completed_type, completed_text),
        _source(manual, "completed_at", completed_type, completed_text),
        _source(failed, "event_at", TimelineEntryType.RETURN_FAILED, failure, "failure_code"),
        _source(canceled, "event_at", TimelineEntryType.RETURN_CANCELED, cancelation),
        _source(returned, "returned_at", TimelineEntryType.RETURN_RETURNED, explanations.RETURNED),
    ]


def _ended_refunds(context: PaymentContext) -> list[EntrySource]:
    payment, refunds = context.payment, Refund.objects.filter(payment=context.payment)
    completed = _with_webhook_event(refunds.filter(status=RefundStatus.COMPLETED), "refund.completed")
    last = completed.order_by("-completed_at", "-pk")
    if payment.status != PaymentStatus.REFUNDED:
        last = last.none()
    failed = _with_webhook_event(refunds.filter(status=RefundStatus.FAILED), "refund.failed")
    canceled = refunds.filter(status=RefundStatus.CANCELED)
    returned = _with_event(refunds.filter(returned_at__isnull=False), TransferEventType.RETURNED)

    def all_refunded(row: Any) -> TimelineEntry:
        """The payment is fully refunded, by the actor of its last refund."""
        text = of_refunds.ALL_REFUNDED.format(amount=money.display(payment.received))
        return TimelineEntry.of(row, TimelineEntryType.REFUNDED, text, {"refund_id": row.id}, by="event_")

    return [
        _source(completed, "completed_at", TimelineEntryType.REFUND_COMPLETED, of_refunds.COMPLETED),
        EntrySource(completed.filter(pk__in=last.values("pk")[:1]), "completed_at", all_refunded),
        _source(failed, "updated_at", TimelineEntryType.REFUND_FAILED, of_transfers.FAILED, "failure_code"),
        _source(
            canceled, "updated_at", TimelineEntryType.REFUND_CANCELED, of_transfers.CANCELED, by="cancel_"
        ),
        _source(returned, "returned_at", TimelineEntryType.REFUND_RETURNED, of_refunds.RETURNED),
    ]


def _with_webhook_event(rows: QuerySet[Any], type: str) -> Any:
    """With the actor and request of the webhook event about the refund."""
    return _with_actor(rows, Event.objects.filter(subject_id=OuterRef("pk"), type=type))


def _with_event(rows: QuerySet[Any], type: TransferEventType) -> Any:
    """With time and actor of the last event of this type of the transfer with the same id."""
    events = TransferEvent.objects.filter(transfer=OuterRef("pk"), type=type)
    return _with_actor(rows, events.order_by("-created_at"))


def _with_actor(rows: QuerySet[Any], events: QuerySet[Any]) -> Any:
    """Annotate `event_at`, `event_actor` and `event_request_id` of the first of `events`, a subquery."""
    columns = {"event_at": "created_at", "event_actor": "actor", "event_request_id": "request_id"}
    return rows.annotate(**{name: Subquery(events.values(column)[:1]) for name, column in columns.items()})


def _source(
    rows: QuerySet[Any],
    time_column: str,
    type: TimelineEntryType,
    summary: Promise,
    *detail_names: str,
    by: str = "event_",
) -> EntrySource:
    """Make entries of refunds or returns. by: see `TimelineEntry.of`."""

    def to_entry(row: Any) -> TimelineEntry:
        ids = (
            {"refund_id": row.id}
            if isinstance(row, Refund)
            else {"return_id": row.id, "bank_transaction_id": row.bank_transaction_id}
        )
        details = ids | {"amount": row.amount} | {name: getattr(row, name) for name in detail_names}
        text = str(summary).format(amount=money.display(row.amount), reason=failures.words(row.failure_code))
        return TimelineEntry.of(row, type, text, details, by=by)

    return EntrySource(rows, time_column, to_entry)
