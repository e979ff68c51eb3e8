"""Money that did not fit, on its way back to whoever paid it. The act before it says who wanted it."""

from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery, Value
from django.db.models.functions import Concat

from core import money
from reconciliation.models import Resolution, ResolutionType, Return, ReturnStatus
from timeline import transfers
from timeline.entries import EntrySource, PaymentContext, TimelineEntry, TimelineEntryType
from transfers.models import TransferEventType


def completed(context: PaymentContext) -> EntrySource:
    rows = _returns(context).filter(status=ReturnStatus.COMPLETED, is_manual=False)
    return EntrySource(
        transfers.with_event(rows, TransferEventType.SUCCEEDED), "completed_at", _completed_entry
    )


def completed_manually(context: PaymentContext) -> EntrySource:
    """No bank was told of it from here: it is over with the act of staff."""
    rows = _returns(context).filter(is_manual=True, status=ReturnStatus.COMPLETED)
    action = Resolution.objects.filter(
        subject_id=OuterRef("movement_id"), type=ResolutionType.SENT_BACK_BY_HAND
    )
    # Before it was completed, where a second person had to approve it.
    earlier = action.filter(created_at__lte=OuterRef("completed_at")).order_by("-created_at", "-pk")
    known = rows.annotate(
        event_actor=Subquery(earlier.values(staff=Concat(Value("staff:"), "actor"))[:1]),
        event_request_id=Subquery(earlier.values("request_id")[:1]),
    )
    return EntrySource(known, "completed_at", _completed_entry)


def failed(context: PaymentContext) -> EntrySource:
    rows = _returns(context).filter(status=ReturnStatus.FAILED)
    return EntrySource(transfers.with_event(rows, TransferEventType.FAILED), "stepped_at", _failed_entry)


def canceled(context: PaymentContext) -> EntrySource:
    """Before the bank had the order: it took the money back itself, or staff ended or rejected it."""
    rows = _returns(context).filter(status=ReturnStatus.CANCELED, is_manual=False)
    return EntrySource(transfers.with_event(rows, TransferEventType.CANCELED), "stepped_at", _canceled_entry)


def returned(context: PaymentContext) -> EntrySource:
    rows = _returns(context).filter(returned_at__isnull=False)
    return EntrySource(transfers.with_event(rows, TransferEventType.RETURNED), "returned_at", _returned_entry)


def _returns(context: PaymentContext) -> QuerySet[Any]:
    rows: QuerySet[Any] = Return.objects.filter(pk__in=context.return_ids)
    return rows


def _completed_entry(row: Any) -> TimelineEntry:
    summary = f"{money.display(row.amount)} sent back to the payer."
    return _entry(row, row.completed_at, TimelineEntryType.RETURN_COMPLETED, summary)


def _failed_entry(row: Any) -> TimelineEntry:
    summary = f"{money.display(row.amount)} could not be sent back: {row.failure_code}."
    return _entry(
        row, row.stepped_at, TimelineEntryType.RETURN_FAILED, summary, failure_code=row.failure_code
    )


def _canceled_entry(row: Any) -> TimelineEntry:
    summary = f"{money.display(row.amount)} not sent back: canceled before submission to the bank."
    return _entry(row, row.stepped_at, TimelineEntryType.RETURN_CANCELED, summary)


def _returned_entry(row: Any) -> TimelineEntry:
    summary = f"{money.display(row.amount)} sent back to the payer was returned."
    return _entry(row, row.returned_at, TimelineEntryType.RETURN_RETURNED, summary)


def _entry(row: Any, at: Any, type: TimelineEntryType, summary: str, **more: str) -> TimelineEntry:
    details = {"return_id": row.id, "receipt_id": row.movement_id, "amount": row.amount, **more}
    return TimelineEntry(at, type, summary, row.event_actor or "", row.event_request_id or "", details)
