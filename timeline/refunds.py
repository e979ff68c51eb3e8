"""Refunds of the payment, and returns of money that did not fit, each with its steps."""

from typing import Any

from django.db.models import F, OuterRef, QuerySet
from django.utils.functional import Promise

from core import failures, money
from payments.models import PaymentStatus
from reconciliation.exceptions import explanations
from reconciliation.models import Resolution, ResolutionType, Return, ReturnStatus
from refunds import explanations as of_refunds
from refunds.models import Refund, RefundStatus
from timeline.entries import EntrySource, PaymentContext, TimelineEntry, TimelineEntryType
from timeline.transfers import with_actor, with_event, with_order
from transfers import explanations as of_transfers
from transfers.models import TransferEventType
from webhooks.models import Event


def refunds_created(context: PaymentContext) -> EntrySource:
    """Exclude refunds that only show a bank's reversal, because no request created them."""
    rows = _refunds(context, reversal_id__isnull=True)
    rows = rows.annotate(event_actor=F("actor"), event_request_id=F("request_id"))
    return _source(rows, "created_at", TimelineEntryType.REFUND_CREATED, of_refunds.CREATED, "reason")


def refund_destinations_set(context: PaymentContext) -> EntrySource:
    """Refunds that waited for an account, with the actor who named it."""
    rows = with_order(_refunds(context)).filter(ordered_at__gt=F("created_at"))
    type_ = TimelineEntryType.REFUND_DESTINATION_SET
    return _source(rows, "ordered_at", type_, of_refunds.DESTINATION_SET)


def refunds_completed(context: PaymentContext) -> EntrySource:
    rows = _with_webhook_event(_refunds(context, status=RefundStatus.COMPLETED), "refund.completed")
    return _source(rows, "completed_at", TimelineEntryType.REFUND_COMPLETED, of_refunds.COMPLETED)


def refunds_failed(context: PaymentContext) -> EntrySource:
    rows = _with_webhook_event(_refunds(context, status=RefundStatus.FAILED), "refund.failed")
    type_, text = TimelineEntryType.REFUND_FAILED, of_transfers.FAILED
    return _source(rows, "updated_at", type_, text, "failure_code")


def refunds_canceled(context: PaymentContext) -> EntrySource:
    rows = _refunds(context, status=RefundStatus.CANCELED)
    rows = rows.annotate(event_actor=F("cancel_actor"), event_request_id=F("cancel_request_id"))
    return _source(rows, "updated_at", TimelineEntryType.REFUND_CANCELED, of_transfers.CANCELED)


def refunds_returned(context: PaymentContext) -> EntrySource:
    rows = with_event(_refunds(context, returned_at__isnull=False), TransferEventType.RETURNED)
    return _source(rows, "returned_at", TimelineEntryType.REFUND_RETURNED, of_refunds.RETURNED)


def payment_refunded(context: PaymentContext) -> EntrySource:
    """The payment is fully refunded, with the actor of its last refund."""
    payment, rows = context.payment, _refunds(context, status=RefundStatus.COMPLETED)
    last = rows.order_by("-completed_at", "-pk")
    if payment.status != PaymentStatus.REFUNDED:
        last = last.none()
    rows = _with_webhook_event(rows.filter(pk__in=last.values("pk")[:1]), "refund.completed")
    summary = of_refunds.ALL_REFUNDED.format(amount=money.display(payment.received))

    def to_entry(row: Any) -> TimelineEntry:
        details = {"refund_id": row.id}
        return TimelineEntry(
            row.completed_at, TimelineEntryType.REFUNDED, summary, *_actor_and_request(row), details
        )

    return EntrySource(rows, "completed_at", to_entry)


def returns_completed(context: PaymentContext) -> EntrySource:
    rows = _returns(context, status=ReturnStatus.COMPLETED, is_manual=False)
    return _completed_returns(with_event(rows, TransferEventType.SUCCEEDED))


def returns_completed_manually(context: PaymentContext) -> EntrySource:
    """Money that staff sent at the bank themselves. The actor is in the resolution before the completion."""
    actions = Resolution.objects.filter(
        subject_id=OuterRef("movement_id"),
        type=ResolutionType.SENT_BACK_BY_HAND,
        created_at__lte=OuterRef("completed_at"),
    ).order_by("-created_at", "-pk")
    rows = _returns(context, status=ReturnStatus.COMPLETED, is_manual=True)
    return _completed_returns(with_actor(rows, actions, "event_at"))


def returns_failed(context: PaymentContext) -> EntrySource:
    rows = with_event(_returns(context, status=ReturnStatus.FAILED), TransferEventType.FAILED)
    summary = explanations.RETURNS[ReturnStatus.FAILED]
    return _source(rows, "event_at", TimelineEntryType.RETURN_FAILED, summary, "failure_code")


def returns_canceled(context: PaymentContext) -> EntrySource:
    """Before the bank had the order: the bank reversed the money, or staff ended or rejected the return."""
    rows = _returns(context, status=ReturnStatus.CANCELED, is_manual=False)
    summary = explanations.RETURNS[ReturnStatus.CANCELED]
    rows = with_event(rows, TransferEventType.CANCELED)
    return _source(rows, "event_at", TimelineEntryType.RETURN_CANCELED, summary)


def returns_returned(context: PaymentContext) -> EntrySource:
    rows = with_event(_returns(context, returned_at__isnull=False), TransferEventType.RETURNED)
    return _source(rows, "returned_at", TimelineEntryType.RETURN_RETURNED, explanations.RETURNED)


def _refunds(context: PaymentContext, **where: Any) -> QuerySet[Any]:
    rows: QuerySet[Any] = Refund.objects.filter(payment=context.payment, **where)
    return rows


def _returns(context: PaymentContext, **where: Any) -> QuerySet[Any]:
    rows: QuerySet[Any] = Return.objects.filter(pk__in=context.return_ids, **where)
    return rows


def _completed_returns(rows: QuerySet[Any]) -> EntrySource:
    summary = explanations.RETURNS[ReturnStatus.COMPLETED]
    return _source(rows, "completed_at", TimelineEntryType.RETURN_COMPLETED, summary)


def _with_webhook_event(rows: QuerySet[Any], type: str) -> QuerySet[Any]:
    """Annotate the actor and request of the webhook event about the refund."""
    return with_actor(rows, Event.objects.filter(subject_id=OuterRef("pk"), type=type), "event_at")


def _source(
    rows: QuerySet[Any], time_column: str, type: TimelineEntryType, summary: Promise, *detail_names: str
) -> EntrySource:
    """Make entries of refunds or returns. `rows` have an annotated actor and request."""

    def to_entry(row: Any) -> TimelineEntry:
        ids = (
            {"refund_id": row.id}
            if isinstance(row, Refund)
            else {"return_id": row.id, "receipt_id": row.movement_id}
        )
        details = ids | {"amount": row.amount} | {name: getattr(row, name) for name in detail_names}
        text = str(summary).format(amount=money.display(row.amount), reason=failures.words(row.failure_code))
        return TimelineEntry(getattr(row, time_column), type, text, *_actor_and_request(row), details)

    return EntrySource(rows, time_column, to_entry)


def _actor_and_request(row: Any) -> tuple[str, str]:
    return row.event_actor or "", row.event_request_id or ""
