"""Outgoing money: queue transfers, send them through banks and acquirers, inquire and complete them.

Each change of state has a commit of its own, with its event and what the handler of the purpose does.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Literal, Protocol

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Greatest, Now
from django.utils.translation import gettext as _

import banks
from audit_trail.acts import ActRefused
from banks import ReportedTransfer, ResultStatus, TransferOrder, TransferPurpose, TransferResult, parallel
from core import digests, failures, request_context
from core.database import rows
from core.database.state_machines import transition_where
from core.digests import Sealed
from core.work import due_work
from core.work.due_work import DueWork
from merchants import bank_connections, services as merchants
from merchants.errors import BankNotConfigured
from transfers import circuit_breakers, history, safe_mode, schedule, sent_orders
from transfers.circuit_breakers import Counterparty
from transfers.models import OPEN_STATES, Transfer, TransferEventType, TransferState

log = logging.getLogger("transfers")
LEASE = timedelta(seconds=60)  # longer than the calls of a batch, and storing their results
# A counterparty is a purpose and a route here, such as "refund bank:scb".
_work = DueWork(max_runs=8, max_runs_of_one=2)
DEFAULT_FAILURE_CODES: dict[ResultStatus, str] = {
    "failed": failures.REJECTED_BY_BANK,
    "returned": failures.RETURNED_BY_BANK,
}
# Results that staff enter for a silent bank: it will never execute the order, or the money arrived.
NEVER_ARRIVED = TransferResult("failed", failure_code=failures.NEVER_ARRIVED)
ARRIVED = TransferResult("succeeded")
# The states that a final result leads to, in order. A pair that is missing here is a contradiction.
STEPS_TO_RESULT: dict[tuple[TransferState, ResultStatus], tuple[ResultStatus, ...]] = {
    (TransferState.SUBMITTED, "succeeded"): ("succeeded",),
    (TransferState.SUBMITTED, "failed"): ("failed",),
    # The money came back before the bank reported that it had arrived.
    (TransferState.SUBMITTED, "returned"): ("succeeded", "returned"),
    (TransferState.SUCCEEDED, "succeeded"): (),
    (TransferState.SUCCEEDED, "returned"): ("returned",),
    (TransferState.FAILED, "failed"): (),
    (TransferState.RETURNED, "returned"): (),
    (TransferState.RETURNED, "succeeded"): (),
}


class AlreadySubmitted(ActRefused):
    """The bank has, or may have, the order: it cannot be canceled."""

    def __init__(self, *order_ids: str) -> None:
        super().__init__(_("%(orders)s may have reached the bank.") % {"orders": ", ".join(order_ids)})


class NotOverdue(ActRefused):
    """Staff cannot complete this transfer: it is not submitted, or its bank may still answer."""


class Ordered(Protocol):
    """The row of an app that asked for an order, with the digest of the account that it asked for."""

    account_digest: Any


class TransferHandler(Protocol):
    """What the app of a purpose, such as refunds, does in the commit of each step."""

    def lock(self, order_id: str, /) -> Ordered:
        """Lock the payment and then the app's own row, and return it. The transfer is locked after them."""

    def is_held(self, transfer: Transfer, *, now: datetime) -> bool:
        """Return whether the order must wait. Called after `lock`, in the commit that would submit it.

        Where money may go is judged here again, because that can change while an order waits.
        """

    def on_submitted(self, order_id: str, *, now: datetime) -> None:
        """Called before the order is sent, and again if it surely did not reach the bank the time before."""

    def on_completed(self, order_id: str, result: TransferResult, *, now: datetime) -> None:
        """Called once for each final status: `succeeded`, `failed` or, after a success, `returned`."""


def checked_route(route: str, merchant_id: str, *, is_void: bool = False) -> str:
    """The route, if it can send the merchant's money in this way. Raises BankNotConfigured."""
    try:
        banks.sender(route, bank_connections.credentials_of(merchant_id, route))
    except banks.UnknownBank:
        raise BankNotConfigured() from None
    if banks.is_void_only(route) != is_void:
        raise BankNotConfigured()
    return route


def seal_account(order: TransferOrder) -> Sealed:
    """Encrypt the account of an order, for `queue`.

    Who asks for the money stores the digest. The order is sent only while all digests of it are equal.
    """
    if not order.account:
        return Sealed("", "")
    return digests.seal(order.account, order.bank_code, order.account_name, context=order.order_id)


def queue(
    *orders: TransferOrder,
    accounts: Mapping[str, Sealed],
    route: str,
    at: datetime,
    merchant_id: str,
    held: Collection[str] = (),
) -> list[Transfer]:
    """Store orders that are due from `at` on, in the caller's transaction, with two statements.

    accounts: sealed, by the id of the order. held: the ids of those that wait for approval, until `release`.
    """
    made = [
        Transfer(
            id=order.order_id,
            purpose=order.purpose,
            merchant_id=merchant_id,
            route=route,
            amount=order.amount,
            bank_code=order.bank_code,
            account_sealed=accounts[order.order_id].token,
            account_name=order.account_name,
            account_digest=accounts[order.order_id].digest,
            charge_id=order.charge_id,
            state=TransferState.HELD if order.order_id in held else TransferState.QUEUED,
            due_at=at,
            created_at=at,
        )
        for order in orders
    ]
    rows.insert_many(made)
    history.record_events({transfer.id: TransferEventType(transfer.state) for transfer in made}, at=at)
    return made


def release(order_id: str, *, now: datetime) -> None:
    """Queue an approved order, in the caller's transaction. Raises IllegalTransition."""
    history.transition(Transfer.objects.locked(order_id), target=TransferState.QUEUED, at=now, due_at=now)


def cancel(*order_ids: str, now: datetime) -> None:
    """Cancel held or queued orders, in the caller's transaction. Raises AlreadySubmitted."""
    found = list(Transfer.objects.cancelable(order_ids).select_for_update(no_key=True).order_by("pk"))
    if len(found) < len(order_ids):
        raise AlreadySubmitted(*order_ids)
    history.transition(*found, target=TransferState.CANCELED, at=now, completed_at=now)


def exists(order_id: str, *states: TransferState) -> bool:
    return bool(Transfer.objects.filter(pk=order_id, state__in=states or list(TransferState)).exists())


def matching_voids(transaction_ids: Iterable[str], *, route: str, amount: int) -> list[str]:
    """Return our void orders of a payment if together they are for `amount` satang, and otherwise none.

    The bank reports such an order as a reversal, perhaps before its call ends.
    """
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
    safe_mode.check(now=now())
    for route in Transfer.objects.due_routes(purpose, now()):
        claim_rows, make_calls = partial(claim, purpose, route, now), partial(_make_calls, handler, now)
        count += _work.run(f"{purpose} {route}", claim_rows, make_calls, limit=limit - count)
    return count


def claim(purpose: TransferPurpose, route: str, now: Callable[[], datetime], limit: int) -> list[Transfer]:
    """Claim up to `limit` due transfers, but none of a counterparty with an open circuit breaker."""
    at = now()
    paused = circuit_breakers.open_circuits(route, at)
    if paused and not route.startswith("bank:"):  # the breaker of an acquirer is for all merchants
        return []
    due = Transfer.objects.due(purpose, route, at).filter(due_work.UNLEASED).exclude(merchant_id__in=paused)
    return due_work.claim(due, limit, lease_until=Now() + LEASE)


def _make_calls(handler: TransferHandler, now: Callable[[], datetime], claimed: Sequence[Transfer]) -> None:
    prepared = [(transfer, _prepare_call(transfer, handler, now())) for transfer in claimed]
    calls = [(transfer, *call) for transfer, call in prepared if call is not None]
    answers = parallel.run_all_timed([run for *_, run in calls], default=TransferResult("unknown"))
    silences = []
    for (transfer, kind, _run), answer in zip(calls, answers, strict=True):
        try:
            if kind == "look up":
                apply_look_up(transfer.id, answer.result, handler, now=now())
            else:
                record_answer(transfer, answer.result, handler, was_sent=kind == "send", now=now())
        except Exception:
            log.exception("the bank's answer about transfer %s could not be stored", transfer.id)
        is_silent = circuit_breakers.is_failure(answer.result.status, answer.seconds)
        silences.append((Counterparty.of(transfer.route, transfer.merchant_id), is_silent))
    circuit_breakers.record_calls(silences, now=now())


_Call = tuple[Literal["inquire", "look up", "send"], Callable[[], TransferResult]]


def _prepare_call(transfer: Transfer, handler: TransferHandler, now: datetime) -> _Call | None:
    """Return the call to make, if any. After an error the transfer is due again when its lease ends.

    To look up is to inquire about an order that is still queued here.
    """
    try:
        config = bank_connections.credentials_of(transfer.merchant_id, transfer.route)
        sender, order = banks.sender(transfer.route, config), transfer.order
        if transfer.state == TransferState.SUBMITTED:
            return "inquire", lambda: sender.inquire(order)
        if safe_mode.is_on():
            return "look up", lambda: sender.inquire(order)
        if submit(transfer.id, handler, now=now):
            sent_orders.note(transfer.id)
            return "send", lambda: sender.send(order)
    except Exception:
        log.exception("transfer %s could not be prepared", transfer.id)
    return None


@transaction.atomic
def submit(order_id: str, handler: TransferHandler, *, now: datetime) -> bool:
    """Submit a queued order before the call.

    Returns False if it must not be sent: held, not queued, of a suspended merchant, or safe mode is on. This
    is the last look at both, in the transaction that decides to send.
    """
    ordered, transfer = handler.lock(order_id), Transfer.objects.locked(order_id)
    if transfer.state != TransferState.QUEUED or safe_mode.is_on():
        return False
    is_suspended = transfer.purpose != "return" and merchants.lock_suspension(transfer.merchant_id)
    if not _has_ordered_account(transfer, ordered) or is_suspended or handler.is_held(transfer, now=now):
        due_at = now + schedule.delay(schedule.HOLD_SECONDS)
        Transfer.objects.filter(pk=transfer.pk).update(due_at=due_at, lease_until=None)
        # The history has one event for each hold, not one for each try.
        if history.last_event_type(transfer.id) != TransferEventType.HELD:
            history.record_events({transfer.id: TransferEventType.HELD}, at=now)
        return False
    _submitted(transfer, handler, now, lease_until=transfer.lease_until)
    return True


def _submitted(transfer: Transfer, handler: TransferHandler, now: datetime, **fields: Any) -> None:
    changes = {"submitted_at": now, "due_at": now + schedule.inquiry_delay(0)} | fields
    history.transition(transfer, target=TransferState.SUBMITTED, at=now, **changes)
    handler.on_submitted(transfer.id, now=now)


def _has_ordered_account(transfer: Transfer, ordered: Ordered) -> bool:
    """Whether bank, account and holder are those for which the money was asked."""
    is_ordered = transfer.account_digest == ordered.account_digest
    if is_ordered and (transfer.charge_id or transfer.has_its_content()):
        return True
    log.error("transfer %s is not sent: its account is not the one that was asked for", transfer.id)
    return False


@transaction.atomic
def apply_look_up(order_id: str, result: TransferResult, handler: TransferHandler, *, now: datetime) -> None:
    """Apply a bank's answer about an order that is queued here, in safe mode.

    If the bank knows it, it was sent before the restore. "Unknown" proves nothing: it is asked again.
    """
    transfer = _lock(order_id, handler)
    if transfer.state != TransferState.QUEUED:
        return
    history.record_events({order_id: TransferEventType.INQUIRY}, at=now, answer=result.status)
    if result.status in ("unknown", "not_sent"):
        due_at = now + schedule.delay(schedule.LOOK_UP_SECONDS)
        Transfer.objects.filter(pk=order_id).update(due_at=due_at, lease_until=None)
        return
    log.warning("%s has order %s, which this database had not sent", transfer.route, order_id)
    _submitted(transfer, handler, now)
    if result.status != "processing":
        complete(order_id, result, handler, now=now)


def record_answer(
    transfer: Transfer, result: TransferResult, handler: TransferHandler, *, was_sent: bool, now: datetime
) -> None:
    """Apply the bank's answer to a sending or, unless `was_sent`, to an inquiry."""
    if not was_sent:
        history.record_events({transfer.id: TransferEventType.INQUIRY}, at=now, answer=result.status)
    if result.status in ("succeeded", "failed", "returned"):
        complete(transfer.id, result, handler, now=now)
    elif result.status == "not_sent" and was_sent:
        _requeue(transfer, now)
    else:
        inquiries = 0 if was_sent else transfer.inquiries + 1
        Transfer.objects.filter(pk=transfer.id, state=TransferState.SUBMITTED).update(
            # Another process may have asked while this one waited for the bank.
            inquiries=Greatest("inquiries", inquiries),
            due_at=now + schedule.inquiry_delay(inquiries),
            bank_reference=result.reference or F("bank_reference"),
            lease_until=None,
        )


@transaction.atomic
def _requeue(transfer: Transfer, now: datetime) -> None:
    """Queue an order again that surely did not reach its bank, unless the bank was asked about it."""
    uninquired = Transfer.objects.filter(pk=transfer.id, inquiries=0)
    due_at = now + schedule.resend_delay(now - transfer.created_at)
    if transition_where(
        uninquired, TransferState.SUBMITTED, TransferState.QUEUED, due_at=due_at, lease_until=None
    ):
        history.record_events({transfer.id: TransferEventType.NOT_SENT}, at=now)


def apply_notification(report: ReportedTransfer, handler: TransferHandler, *, now: datetime) -> None:
    """Apply a final result that the bank reports without being asked."""
    result = TransferResult(report.status, report.reference, report.failure_code)
    complete(report.order_id, result, handler, now=now)


def classify_notification(report: ReportedTransfer, *, bank: str) -> Literal["new", "repeat", "conflict"]:
    """Return what a report of `bank` would change. A report about an order of another bank is a conflict."""
    routes = [f"bank:{bank}", f"acquirer:{bank}"]
    transfer = Transfer.objects.filter(pk=report.order_id, route__in=routes).first()
    steps = transfer and STEPS_TO_RESULT.get((TransferState(transfer.state), report.status))
    if steps is None:
        return "conflict"
    return "new" if steps else "repeat"


@transaction.atomic
def complete(order_id: str, result: TransferResult, handler: TransferHandler, *, now: datetime) -> None:
    """Apply a final result of the bank. A repeated one changes nothing, a contradiction is an exception."""
    transfer = _lock(order_id, handler)
    steps = STEPS_TO_RESULT.get((TransferState(transfer.state), result.status))
    if steps is None:
        history.record_contradiction(
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
    for status in steps:
        _apply(transfer, status, result, handler, now=now)


@transaction.atomic
def complete_by_reversal(order_id: str, handler: TransferHandler, *, now: datetime) -> None:
    """Complete a void that its bank reports as a reversal, perhaps before we record that we sent it."""
    transfer = _lock(order_id, handler)
    if transfer.state == TransferState.QUEUED:
        _submitted(transfer, handler, now, due_at=now)
    for status in STEPS_TO_RESULT[TransferState(transfer.state), "succeeded"]:
        _apply(transfer, status, ARRIVED, handler, now=now)


def lock_overdue(order_id: str, *, now: datetime) -> Transfer:
    """Lock and return a transfer without a result for 15 minutes. Raises NotOverdue.

    The 15 minutes begin when it was submitted, so that no call is still under way. The caller holds the
    locks of its handler.
    """
    transfer = Transfer.objects.locked(order_id)
    is_recent = (transfer.submitted_at or now) > now - schedule.OVERDUE_AFTER
    if transfer.state != TransferState.SUBMITTED or is_recent:
        raise NotOverdue(_("It is completed or not overdue."))
    return transfer


@transaction.atomic
def complete_manually(
    order_id: str, result: TransferResult, handler: TransferHandler, *, now: datetime
) -> None:
    """Complete an overdue transfer as `NEVER_ARRIVED` or `ARRIVED`, by the bank's answer to staff.

    Raises NotOverdue, also when staff click twice.
    """
    handler.lock(order_id)
    transfer, actor = lock_overdue(order_id, now=now), request_context.current().actor
    _apply(transfer, result.status, result, handler, now=now, completed_by=actor)
    log.warning("%s completed transfer %s by hand: %s", actor, order_id, result.status)


@transaction.atomic
def mark_returned(order_id: str, handler: TransferHandler, *, now: datetime) -> None:
    """Book a succeeded transfer as returned, after the bank confirmed this to staff. Raises ActRefused."""
    transfer, actor = _lock(order_id, handler), request_context.current().actor
    if transfer.state != TransferState.SUCCEEDED:
        raise ActRefused(_("This order is no longer completed here."))
    _apply(transfer, "returned", TransferResult("returned"), handler, now=now)
    log.warning("%s booked transfer %s as returned", actor, order_id)


def _lock(order_id: str, handler: TransferHandler) -> Transfer:
    handler.lock(order_id)
    return Transfer.objects.locked(order_id)


def _apply(
    transfer: Transfer,
    status: ResultStatus,
    result: TransferResult,
    handler: TransferHandler,
    *,
    now: datetime,
    **fields: str,
) -> None:
    code = result.failure_code or DEFAULT_FAILURE_CODES[status] if status in DEFAULT_FAILURE_CODES else ""
    reference = result.reference or transfer.bank_reference
    changes: dict[str, Any] = {"failure_code": code, "bank_reference": reference, "completed_at": now}
    history.transition(transfer, target=TransferState(status), at=now, **changes, **fields)
    handler.on_completed(transfer.id, TransferResult(status, reference, code), now=now)
