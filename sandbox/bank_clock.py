"""Bring forward what the sandbox bank plans for one merchant, for the test clock."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

import orjson
from django.db.models import DateTimeField, F, QuerySet, Value
from django.db.models.functions import Greatest

from sandbox import settlements
from sandbox.models import (
    CallbackState,
    ChargeAuthorization,
    SandboxCallback,
    SandboxCharge,
    SandboxEntry,
    SandboxOrder,
    SandboxPayment,
)
from sandbox.services import entry_object


def count_reports(biller_id: str, *, now: datetime, limit: int) -> int:
    """How many callbacks and entries lie ahead; counts up to `limit` + 1 of each."""
    return sum(rows[: limit + 1].count() for rows in (_callbacks(biller_id, now), _entries(biller_id, now)))


def report_sooner(
    biller_id: str, earlier: Callable[[str, datetime], datetime], *, span: timedelta, now: datetime
) -> int:
    """Move planned entries and callbacks. Returns how many callbacks.

    earlier: the new instant, from the reference of the code and the planned instant.
    """
    for entry in _entries(biller_id, now).select_related("payment").select_for_update(of=("self",)):
        _move_entry(entry, earlier)
    callbacks = _callbacks(biller_id, now)
    return callbacks.update(due_at=_sooner("due_at", span, now))


def complete_sooner(references: Sequence[str], *, span: timedelta, now: datetime) -> None:
    """Move the completion of the service's orders. A return follows in real time, after the success."""
    orders = SandboxOrder.objects.filter(reference__in=references, completes_at__gt=now)
    orders.update(completes_at=_sooner("completes_at", span, now))


def age_charges(order_ids: Sequence[str], *, span: timedelta) -> None:
    """Let the time pass in which a payer can authorise these charges."""
    charges = SandboxCharge.objects.filter(order_id__in=order_ids, authorization=ChargeAuthorization.PENDING)
    charges.update(created_at=F("created_at") - span)


def settle_sooner(order_ids: Sequence[str], *, span: timedelta, now: datetime) -> None:
    """Hold these charges shorter, and transfer them if that ends the hold."""
    settlements.lock()
    held = SandboxCharge.objects.filter(order_id__in=order_ids, settled_at=None, transferable_at__gt=now)
    is_over = held.filter(transferable_at__lte=now + span).exists()
    held.update(transferable_at=_sooner("transferable_at", span, now))
    if is_over:
        settlements.transfer(now)


def _callbacks(biller_id: str, now: datetime) -> "QuerySet[SandboxCallback]":
    return SandboxCallback.objects.filter(
        state=CallbackState.WAITING, due_at__gt=now, payment__biller_id=biller_id
    )


def _entries(biller_id: str, now: datetime) -> "QuerySet[SandboxEntry]":
    """Those that the bank has not shown yet. What it has reported never changes."""
    return SandboxEntry.objects.filter(occurred_at__gt=now, booked_at__gt=now, payment__biller_id=biller_id)


def _move_entry(entry: SandboxEntry, earlier: Callable[[str, datetime], datetime]) -> None:
    """Move an entry, and write its time into the callbacks that report it."""
    payment, planned_at = entry.payment, entry.occurred_at
    entry.occurred_at = earlier(payment.reference1, planned_at)
    entry.booked_at = earlier(payment.reference1, entry.booked_at)
    entry.save(update_fields=["occurred_at", "booked_at"])
    SandboxPayment.objects.filter(pk=payment.pk, paid_at=planned_at).update(paid_at=entry.occurred_at)
    body = entry_object(entry)
    for callback in payment.callbacks.filter(state=CallbackState.WAITING):
        if orjson.loads(callback.body)["type"] == entry.type:
            callback.body = orjson.dumps(body).decode()
            callback.save(update_fields=["body"])


def _sooner(name: str, span: timedelta, now: datetime) -> Greatest:
    return Greatest(F(name) - Value(span), Value(now, DateTimeField()), output_field=DateTimeField())
