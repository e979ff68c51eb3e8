"""Refunds of the payment, each with every step it took."""

from functools import partial
from typing import Any

from django.db.models import F, OuterRef, QuerySet, Subquery

from console.timeline import orders
from console.timeline.entries import Entry, Moment, Subject, Type
from core import money
from payments.models import Status as Payments
from refunds.models import Refund, Status
from transfers.models import What
from webhooks.models import Event


def created(subject: Subject) -> Moment:
    """Of a refund by which the bank took the money back itself, nobody asked."""
    tell = partial(_told, Type.REFUND_CREATED, "created_at", "{amount} are to go back.")
    rows = _of(subject).filter(reversal_id__isnull=True)
    return Moment(rows.annotate(actor=F("asked_by"), request_id=F("asked_request_id")), "created_at", tell)


def addressed(subject: Subject) -> Moment:
    """Of a refund that waited for an account, by whoever named it."""
    rows = orders.with_order(_of(subject)).filter(ordered_at__gt=F("created_at"))
    tell = partial(_told, Type.REFUND_ADDRESSED, "ordered_at", "It is known where {amount} are to go.")
    return Moment(rows, "ordered_at", tell)


def completed(subject: Subject) -> Moment:
    tell = partial(_told, Type.REFUND_COMPLETED, "completed_at", "{amount} went back.")
    rows = _with_cause(_of(subject).filter(status=Status.COMPLETED), Type.REFUND_COMPLETED)
    return Moment(rows, "completed_at", tell)


def failed(subject: Subject) -> Moment:
    tell = partial(_told, Type.REFUND_FAILED, "updated_at", "{amount} could not go back: {failure_code}.")
    rows = _with_cause(_of(subject).filter(status=Status.FAILED), Type.REFUND_FAILED)
    return Moment(rows, "updated_at", tell)


def canceled(subject: Subject) -> Moment:
    tell = partial(_told, Type.REFUND_CANCELED, "updated_at", "{amount} are not to go back after all.")
    rows = _of(subject).filter(status=Status.CANCELED)
    known = rows.annotate(actor=F("canceled_by"), request_id=F("canceled_request_id"))
    return Moment(known, "updated_at", tell)


def came_back(subject: Subject) -> Moment:
    tell = partial(_told, Type.REFUND_RETURNED, "returned_at", "{amount} that had gone back came back.")
    rows = _of(subject).filter(returned_at__isnull=False)
    return Moment(orders.with_step(rows, What.RETURNED), "returned_at", tell)


def whole(subject: Subject) -> Moment:
    """The payment is refunded, by the last refund of it."""
    payment, rows = subject.payment, _of(subject).filter(status=Status.COMPLETED)
    last = rows.order_by("-completed_at", "-pk") if payment.status == Payments.REFUNDED else rows.none()
    caused = _with_cause(rows.filter(pk__in=last.values("pk")[:1]), Type.REFUND_COMPLETED)
    return Moment(caused, "completed_at", partial(_all_went_back, money.display(payment.received)))


def _of(subject: Subject) -> QuerySet[Any]:
    rows: QuerySet[Any] = Refund.objects.filter(payment=subject.payment)
    return rows


def _with_cause(rows: QuerySet[Any], type: Type) -> QuerySet[Any]:
    """By the event of the same name, which says who caused it."""
    event = Event.objects.filter(subject_id=OuterRef("pk"), type=type.value)
    known: QuerySet[Any] = rows.annotate(
        actor=Subquery(event.values("actor")[:1]), request_id=Subquery(event.values("request_id")[:1])
    )
    return known


def _told(type: Type, at: str, summary: str, row: Any) -> Entry:
    said = summary.format(amount=money.display(row.amount), failure_code=row.failure_code)
    details = {"refund_id": row.id, "amount": row.amount}
    if type in (Type.REFUND_CREATED, Type.REFUND_FAILED):
        details |= (
            {"reason": row.reason} if type == Type.REFUND_CREATED else {"failure_code": row.failure_code}
        )
    actor, request_id = getattr(row, "actor", None), getattr(row, "request_id", None)
    return Entry(getattr(row, at), type, said, actor or "", request_id or "", details)


def _all_went_back(amount: str, row: Any) -> Entry:
    summary = f"All of it has gone back: {amount}."
    details = {"refund_id": row.id}
    return Entry(row.completed_at, Type.REFUNDED, summary, row.actor or "", row.request_id or "", details)
