"""Each step of a transfer, in a commit of its own."""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Protocol

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Now

from banks import ResultStatus, TransferPurpose, TransferResult
from core import due_work
from core.state_machines import transition_where
from transfers import circuit_breakers, contradictions, history, schedule
from transfers.errors import NotOverdue, NotSucceeded
from transfers.models import Transfer, TransferEventType, TransferState

log = logging.getLogger("transfers")
# Longer than the calls of a batch, and storing their results.
LEASE = timedelta(seconds=60)
DEFAULT_FAILURE_CODES: dict[ResultStatus, str] = {
    "failed": "rejected_by_bank",
    "returned": "returned_by_bank",
}
# What staff may find when they ask a silent bank: it has no such order and takes none, or the money arrived.
NEVER_ARRIVED, ARRIVED = TransferResult("failed", failure_code="never_arrived"), TransferResult("succeeded")
# What a last word does to a transfer, one after the other. What is not here contradicts what we know.
STEPS_TO_RESULT: dict[tuple[TransferState, ResultStatus], tuple[ResultStatus, ...]] = {
    (TransferState.SUBMITTED, "succeeded"): ("succeeded",),
    (TransferState.SUBMITTED, "failed"): ("failed",),
    (TransferState.SUBMITTED, "returned"): (
        "succeeded",
        "returned",
    ),  # it came back before we heard that it had arrived
    (TransferState.SUCCEEDED, "succeeded"): (),
    (TransferState.SUCCEEDED, "returned"): ("returned",),
    (TransferState.FAILED, "failed"): (),
    (TransferState.RETURNED, "returned"): (),
    (TransferState.RETURNED, "succeeded"): (),
}


class TransferHandler(Protocol):
    """What a transfer is for, such as a refund: told of each step in the commit of the step."""

    def lock(self, order_id: str) -> None:
        """Lock the payment and the owner's own row, in this order; the transfer is locked after it."""

    def is_held(self, order_id: str, *, now: datetime) -> bool:
        """Whether the bank must not be told for now; asked in the commit that would tell it, after `lock`."""

    def on_submitted(self, order_id: str, *, now: datetime) -> None:
        """The bank is about to be told. Comes again if it surely never heard of it the time before."""

    def on_completed(self, order_id: str, result: TransferResult, *, now: datetime) -> None:
        """The last word: `succeeded`, `failed` or, after a success, `returned`; each comes once."""


def claim(purpose: TransferPurpose, route: str, now: Callable[[], datetime], limit: int) -> list[Transfer]:
    """Claim up to `limit` transfers that are due, but none of a counterparty with an open circuit breaker."""
    at = now()
    paused = circuit_breakers.open_circuits(route, at)
    if paused and not route.startswith("bank:"):  # an acquirer rests for all merchants
        return []
    due = Transfer.objects.due(purpose, route, at).filter(due_work.UNLEASED).exclude(merchant_id__in=paused)
    return due_work.claim(due, limit, lease_until=Now() + LEASE)


@transaction.atomic
def submit(order_id: str, handler: TransferHandler, *, now: datetime) -> bool:
    """Queued becomes submitted, before the call. False if it is not queued any more: it must not be sent."""
    handler.lock(order_id)
    transfer = Transfer.objects.locked(order_id)
    if transfer.state != TransferState.QUEUED:
        return False
    if handler.is_held(order_id, now=now):
        _postpone(transfer, now)
        return False
    due_at, lease_until = now + schedule.inquiry_delay(0), transfer.lease_until
    history.transition(
        transfer, TransferState.SUBMITTED, at=now, submitted_at=now, due_at=due_at, lease_until=lease_until
    )
    handler.on_submitted(order_id, now=now)
    return True


def record_answer(
    transfer: Transfer, result: TransferResult, handler: TransferHandler, *, was_sent: bool, now: datetime
) -> None:
    """Write down what came of a sending, or else of an inquiry."""
    if not was_sent:
        history.record_event(transfer.id, TransferEventType.INQUIRY, at=now, answer=result.status)
    if result.status in ("succeeded", "failed", "returned"):
        complete(transfer.id, result, handler, now=now)
    elif result.status == "not_sent" and was_sent:
        _requeue(transfer, now)
    else:
        _schedule_inquiry(transfer, result, 0 if was_sent else transfer.inquiries + 1, now)


@transaction.atomic
def complete(order_id: str, result: TransferResult, handler: TransferHandler, *, now: datetime) -> None:
    """The bank's last word. The same again changes nothing; one that contradicts is an exception."""
    transfer = _locked(order_id, handler)
    states = STEPS_TO_RESULT.get((TransferState(transfer.state), result.status))
    if states is None:
        contradictions.record(
            order_id,
            merchant_id=transfer.merchant_id,
            route=transfer.route,
            amount=transfer.amount,
            state=transfer.state,
            answer=result.status,
            bank_reference=result.reference,
            now=now,
        )
        return
    for fate in states:
        _apply(transfer, fate, result, handler, now=now)


@transaction.atomic
def complete_by_reversal(order_id: str, handler: TransferHandler, *, now: datetime) -> None:
    """The bank tells of its own accord that it has done what it was told, or was about to be told."""
    transfer = _locked(order_id, handler)
    if transfer.state == TransferState.QUEUED:
        history.transition(transfer, TransferState.SUBMITTED, at=now, submitted_at=now, due_at=now)
        handler.on_submitted(order_id, now=now)
    for fate in STEPS_TO_RESULT[TransferState(transfer.state), "succeeded"]:
        _apply(transfer, fate, ARRIVED, handler, now=now)


def lock_overdue(order_id: str, *, now: datetime) -> Transfer:
    """The order under its lock, if its bank has been silent for long. Raises NotOverdue.

    What counts is when the bank was told, not when it was ordered: no call may still be under way. The caller
    holds the owner's locks.
    """
    transfer = Transfer.objects.locked(order_id)
    if (
        transfer.state != TransferState.SUBMITTED
        or (transfer.submitted_at or now) > now - schedule.OVERDUE_AFTER
    ):
        raise NotOverdue(order_id)
    return transfer


@transaction.atomic
def complete_manually(
    order_id: str, result: TransferResult, handler: TransferHandler, *, actor: str, now: datetime
) -> None:
    """`NEVER_ARRIVED` or `ARRIVED`, as the bank told `by` of staff.

    Raises NotOverdue, as at a second click.
    """
    handler.lock(order_id)
    transfer = lock_overdue(order_id, now=now)
    _apply(transfer, result.status, result, handler, now=now, completed_by=actor)
    log.warning("%s ended transfer %s by hand: %s", actor, order_id, result.status)


@transaction.atomic
def mark_returned(order_id: str, handler: TransferHandler, *, actor: str, now: datetime) -> None:
    """The bank told `by` of staff that what it had reported as sent never arrived. Raises NotSucceeded."""
    transfer = _locked(order_id, handler)
    if transfer.state != TransferState.SUCCEEDED:
        raise NotSucceeded(order_id)
    _apply(transfer, "returned", TransferResult("returned"), handler, now=now)
    log.warning("%s booked transfer %s as returned", actor, order_id)


def _postpone(transfer: Transfer, now: datetime) -> None:
    """Try again later. Only the beginning of a hold is written down."""
    Transfer.objects.filter(pk=transfer.pk).update(due_at=now + schedule.hold_delay(), lease_until=None)
    if history.last_event_type(transfer.id) != TransferEventType.HELD:
        history.record_event(transfer.id, TransferEventType.HELD, at=now)


def _locked(order_id: str, handler: TransferHandler) -> Transfer:
    handler.lock(order_id)
    return Transfer.objects.locked(order_id)


def _apply(
    transfer: Transfer,
    fate: ResultStatus,
    result: TransferResult,
    handler: TransferHandler,
    *,
    now: datetime,
    **fields: str,
) -> None:
    code = result.failure_code or DEFAULT_FAILURE_CODES[fate] if fate in DEFAULT_FAILURE_CODES else ""
    reference = result.reference or transfer.bank_reference
    known: dict[str, Any] = {"failure_code": code, "bank_reference": reference, "completed_at": now}
    history.transition(transfer, TransferState(fate), at=now, **known, **fields)
    handler.on_completed(transfer.id, TransferResult(fate, reference, code), now=now)


@transaction.atomic
def _requeue(transfer: Transfer, now: datetime) -> None:
    """It surely never reached the bank, and nobody asked there in the meantime: it may be sent again."""
    uninquired = Transfer.objects.filter(pk=transfer.id, inquiries=0)
    due_at = now + schedule.resend_delay(now - transfer.created_at)
    if transition_where(
        uninquired, TransferState.SUBMITTED, TransferState.QUEUED, due_at=due_at, lease_until=None
    ):
        history.record_event(transfer.id, TransferEventType.NOT_SENT, at=now)


def _schedule_inquiry(transfer: Transfer, result: TransferResult, inquiries: int, now: datetime) -> None:
    waiting = Transfer.objects.filter(pk=transfer.id, state=TransferState.SUBMITTED)
    waiting.update(
        inquiries=inquiries,
        due_at=now + schedule.inquiry_delay(inquiries),
        bank_reference=result.reference or F("bank_reference"),
        lease_until=None,
    )
