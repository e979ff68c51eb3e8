"""Money that did not fit, on its way back to whoever paid it. The act before it says who wanted it."""

from typing import Any

from django.db.models import OuterRef, QuerySet, Subquery, Value
from django.db.models.functions import Concat

from console.timeline import orders
from console.timeline.entries import Entry, Moment, Subject, Type
from core import money
from receipts.models import Act, Deed, Return, ReturnStatus
from transfers.models import What


def completed(subject: Subject) -> Moment:
    rows = _of(subject).filter(status=ReturnStatus.COMPLETED, by_hand=False)
    return Moment(orders.with_step(rows, What.SUCCEEDED), "completed_at", _completed)


def completed_by_hand(subject: Subject) -> Moment:
    """No bank was told of it from here: it is over with the act of staff."""
    rows = _of(subject).filter(by_hand=True, status=ReturnStatus.COMPLETED)
    act = Act.objects.filter(subject_id=OuterRef("receipt_id"), deed=Deed.SENT_BACK_BY_HAND)
    # Before it was completed, where a second person had to approve it.
    noted = act.filter(at__lte=OuterRef("completed_at")).order_by("-at", "-pk")
    known = rows.annotate(
        actor=Subquery(noted.values(actor=Concat(Value("staff:"), "by"))[:1]),
        request_id=Subquery(noted.values("request_id")[:1]),
    )
    return Moment(known, "completed_at", _completed)


def failed(subject: Subject) -> Moment:
    rows = _of(subject).filter(status=ReturnStatus.FAILED)
    return Moment(orders.with_step(rows, What.FAILED), "stepped_at", _failed)


def canceled(subject: Subject) -> Moment:
    """Before the bank had the order: it took the money back itself, or staff ended or rejected it."""
    rows = _of(subject).filter(status=ReturnStatus.CANCELED, by_hand=False)
    return Moment(orders.with_step(rows, What.CANCELED), "stepped_at", _canceled)


def came_back(subject: Subject) -> Moment:
    rows = _of(subject).filter(returned_at__isnull=False)
    return Moment(orders.with_step(rows, What.RETURNED), "returned_at", _came_back)


def _of(subject: Subject) -> QuerySet[Any]:
    rows: QuerySet[Any] = Return.objects.filter(pk__in=subject.return_ids)
    return rows


def _completed(row: Any) -> Entry:
    summary = f"{money.display(row.amount)} went back to whoever paid."
    return _entry(row, row.completed_at, Type.RETURN_COMPLETED, summary)


def _failed(row: Any) -> Entry:
    summary = f"{money.display(row.amount)} could not be sent back: {row.failure_code}."
    return _entry(row, row.stepped_at, Type.RETURN_FAILED, summary, failure_code=row.failure_code)


def _canceled(row: Any) -> Entry:
    summary = f"{money.display(row.amount)} are not sent back: the order was canceled before the bank had it."
    return _entry(row, row.stepped_at, Type.RETURN_CANCELED, summary)


def _came_back(row: Any) -> Entry:
    summary = f"{money.display(row.amount)} that had been sent back came back."
    return _entry(row, row.returned_at, Type.RETURN_RETURNED, summary)


def _entry(row: Any, at: Any, type: Type, summary: str, **more: str) -> Entry:
    details = {"return_id": row.id, "receipt_id": row.receipt_id, "amount": row.amount, **more}
    return Entry(at, type, summary, row.actor or "", row.request_id or "", details)
