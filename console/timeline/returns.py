"""Money that did not fit, on its way back to whoever paid it."""

from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery

from console.timeline.entries import CLOCK, Entry, Moment, Subject, Type
from core import money
from receipts.models import Return, ReturnStatus
from transfers.models import Transfer


def orders(subject: Subject) -> Moment:
    """The act before it says who wanted it."""
    told = Transfer.objects.filter(pk__in=subject.return_ids, told_at__isnull=False)
    return Moment(told, "told_at", _told)


def completed(subject: Subject) -> Moment:
    return Moment(_of(subject).filter(status=ReturnStatus.COMPLETED), "completed_at", _completed)


def failed(subject: Subject) -> Moment:
    return Moment(_of(subject).filter(status=ReturnStatus.FAILED), "ended_at", _failed)


def canceled(subject: Subject) -> Moment:
    """Before the bank had the order, for it took the money back itself."""
    rows = _of(subject).filter(status=ReturnStatus.CANCELED).select_related("receipt")
    return Moment(rows, "ended_at", _canceled)


def came_back(subject: Subject) -> Moment:
    return Moment(_of(subject).filter(returned_at__isnull=False), "returned_at", _came_back)


def _of(subject: Subject) -> QuerySet[Any]:
    """With what is known of their orders; what was sent by hand has none."""
    order = Transfer.objects.filter(pk=OuterRef("pk"))
    rows: QuerySet[Any] = Return.objects.filter(pk__in=subject.return_ids)
    known: QuerySet[Any] = rows.annotate(
        ended_at=Subquery(order.values("ended_at")[:1]), settled_by=Subquery(order.values("settled_by")[:1])
    )
    return known


def _told(order: Transfer) -> Entry:
    assert order.told_at is not None
    summary = f"The bank is told to send {money.display(order.amount)} back."
    details = {"return_id": order.id, "amount": order.amount}
    return Entry(order.told_at, Type.RETURN_TOLD, summary, CLOCK, details=details)


def _completed(row: Any) -> Entry:
    summary = f"{money.display(row.amount)} went back to whoever paid."
    return _entry(row, row.completed_at, Type.RETURN_COMPLETED, summary)


def _failed(row: Any) -> Entry:
    summary = f"{money.display(row.amount)} could not be sent back: {row.failure_code}."
    return _entry(row, row.ended_at, Type.RETURN_FAILED, summary, failure_code=row.failure_code)


def _canceled(row: Any) -> Entry:
    summary = f"{money.display(row.amount)} are not sent back: the bank took them back itself."
    details = {"return_id": row.id, "receipt_id": row.receipt_id, "amount": row.amount}
    return Entry(row.ended_at, Type.RETURN_CANCELED, summary, f"bank:{row.receipt.bank}", details=details)


def _came_back(row: Any) -> Entry:
    summary = f"{money.display(row.amount)} that had been sent back came back."
    return _entry(row, row.returned_at, Type.RETURN_RETURNED, summary)


def _entry(row: Any, at: Any, type: Type, summary: str, **more: str) -> Entry:
    details = {"return_id": row.id, "receipt_id": row.receipt_id, "amount": row.amount, **more}
    return Entry(at, type, summary, f"staff:{row.settled_by}" if row.settled_by else CLOCK, details=details)
