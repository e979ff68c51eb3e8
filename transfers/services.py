"""Money out: order it, take the order back, carry it out through a bank, hear what became of it."""

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Literal

import banks
from banks import ReportedTransfer, TransferOrder, TransferPurpose, TransferResult, parallel
from core import vault
from core.due_work import DueWork
from merchants import bank_connections
from transfers import circuit_breakers, completion, history
from transfers.circuit_breakers import Counterparty
from transfers.completion import (
    ARRIVED,
    NEVER_ARRIVED,
    TransferHandler,
    complete_by_reversal,
    complete_manually,
    lock_overdue,
    mark_returned,
)
from transfers.errors import AlreadySubmitted, NotOverdue, NotSucceeded
from transfers.models import CANCELABLE_STATES, OPEN_STATES, Transfer, TransferEventType, TransferState

__all__ = [
    "ARRIVED",
    "NEVER_ARRIVED",
    "AlreadySubmitted",
    "NotOverdue",
    "NotSucceeded",
    "TransferHandler",
    "apply_notification",
    "cancel",
    "classify_notification",
    "complete_by_reversal",
    "complete_manually",
    "exists",
    "is_queued",
    "lock_overdue",
    "mark_returned",
    "matching_voids",
    "queue",
    "release",
    "run_due",
]  # fmt: skip

log = logging.getLogger("transfers")
# A counterparty is a purpose and a route here, such as "refund bank:scb".
_work = DueWork(max_runs=8, max_runs_of_one=2)


def queue(
    order: TransferOrder, *, route: str, at: datetime, merchant_id: str, is_held: bool = False
) -> Transfer:
    """Store an order to be carried out from `at` on, at that merchant's bank. In the caller's transaction.

    is_held: it waits for approval; `release` queues it.
    """
    state = TransferState.HELD if is_held else TransferState.QUEUED
    transfer: Transfer = Transfer.objects.create(
        id=order.order_id,
        purpose=order.purpose,
        merchant_id=merchant_id,
        route=route,
        amount=order.amount,
        bank_code=order.bank_code,
        account_sealed=vault.seal(order.account, context=order.order_id) if order.account else "",
        account_name=order.account_name,
        charge_id=order.charge_id,
        state=state,
        due_at=at,
        created_at=at,
    )
    history.record_event(transfer.id, TransferEventType(state), at=at)
    return transfer


def release(order_id: str, *, now: datetime) -> None:
    """Held becomes queued, in the caller's transaction: it is approved. Raises IllegalTransition."""
    history.transition(Transfer.objects.locked(order_id), TransferState.QUEUED, at=now, due_at=now)


def cancel(order_id: str, *, now: datetime) -> None:
    """Held or queued becomes canceled, in the caller's transaction. Raises AlreadySubmitted."""
    transfer = Transfer.objects.locked(order_id)
    if transfer.state not in CANCELABLE_STATES:
        raise AlreadySubmitted(order_id)
    history.transition(transfer, TransferState.CANCELED, at=now, completed_at=now)


def matching_voids(transaction_ids: Iterable[str], *, route: str, amount: int) -> list[str]:
    """Our orders to take back a payment of `amount` satang, carried out or not yet: its bank answers them by
    telling so. None where they are for less."""
    if not banks.is_void_only(route):
        return []
    made = Transfer.objects.filter(route=route, charge_id__in=[name for name in transaction_ids if name])
    orders = dict(made.filter(state__in=[*OPEN_STATES, TransferState.SUCCEEDED]).values_list("pk", "amount"))
    return list(orders) if sum(orders.values()) == amount else []


def run_due(
    purpose: TransferPurpose, handler: TransferHandler, *, now: Callable[[], datetime], limit: int = 50
) -> int:
    """Send or inquire up to `limit` transfers that are due. Returns how many were claimed.

    Several runs at once are safe. A crash anywhere leads to an inquiry, never to a second sending.
    """
    count = 0
    for route in Transfer.objects.due_routes(purpose, now()):
        claim, make_calls = partial(completion.claim, purpose, route, now), partial(_make_calls, handler, now)
        count += _work.run(f"{purpose} {route}", claim, make_calls, limit=limit - count)
    return count


def apply_notification(notice: ReportedTransfer, handler: TransferHandler, *, now: datetime) -> None:
    """The bank's word of its own accord settles a transfer as an inquiry would; the same again is nothing."""
    result = TransferResult(notice.status, notice.reference, notice.failure_code)
    completion.complete(notice.order_id, result, handler, now=now)


def classify_notification(notice: ReportedTransfer, *, bank: str) -> Literal["new", "repeat", "conflict"]:
    """What a notice of `bank` would change. An order that this bank was not told of is a conflict."""
    told = Transfer.objects.filter(pk=notice.order_id, route__in=[f"bank:{bank}", f"acquirer:{bank}"])
    transfer = told.first()
    states = (
        None
        if transfer is None
        else completion.STEPS_TO_RESULT.get((TransferState(transfer.state), notice.status))
    )
    if states is None:
        return "conflict"
    return "new" if states else "repeat"


def is_queued(order_id: str) -> bool:
    """Whether it waits to be sent: no bank was told of it, or it surely never arrived there."""
    return bool(Transfer.objects.filter(pk=order_id, state=TransferState.QUEUED).exists())


def exists(order_id: str) -> bool:
    """Whether it is an order of ours, whoever was told of it."""
    return Transfer.objects.filter(pk=order_id).exists()


@dataclass(frozen=True, slots=True)
class _Call:
    """One call to be made: the first about its order, or an inquiry."""

    transfer: Transfer
    is_sending: bool
    call: Callable[[], TransferResult]


def _make_calls(handler: TransferHandler, now: Callable[[], datetime], claimed: Sequence[Transfer]) -> None:
    prepared = [_prepare(transfer, handler, now()) for transfer in claimed]
    calls = [call for call in prepared if call is not None]
    results = parallel.run_all_timed([call.call for call in calls], default=TransferResult("unknown"))
    for call, result in zip(calls, results, strict=True):
        _record(call, result.result, handler, now())
    parties = [Counterparty.of(call.transfer.route, call.transfer.merchant_id) for call in calls]
    silences = [circuit_breakers.is_failure(result.result.status, result.seconds) for result in results]
    circuit_breakers.record_calls(zip(parties, silences, strict=True), now=now())


def _prepare(transfer: Transfer, handler: TransferHandler, now: datetime) -> _Call | None:
    """None if there is nothing to do for us; what fails is logged and comes due again by its lease."""
    try:
        sender, order = (
            banks.sender(transfer.route, bank_connections.credentials_of(transfer.merchant_id)),
            transfer.order,
        )
        if transfer.state == TransferState.SUBMITTED:
            return _Call(transfer, False, lambda: sender.inquire(order))
        if completion.submit(transfer.id, handler, now=now):
            return _Call(transfer, True, lambda: sender.send(order))
    except Exception:
        log.exception("transfer %s could not be taken up", transfer.id)
    return None


def _record(call: _Call, result: TransferResult, handler: TransferHandler, now: datetime) -> None:
    try:
        completion.record_answer(call.transfer, result, handler, was_sent=call.is_sending, now=now)
    except Exception:
        log.exception("the bank's word on transfer %s could not be noted", call.transfer.id)
