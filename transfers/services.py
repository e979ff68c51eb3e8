"""Money out: order it, take the order back, carry it out through a bank, hear what became of it."""

import logging
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import banks
from banks import Order, OrderNotice, Purpose, Word, calling
from core import vault
from core.slots import NoFreeSlot, Slots
from merchants import links
from transfers import breakers, settling, steps
from transfers.breakers import Party
from transfers.errors import AlreadyTold, NotBookedAsSent, NotOverdue
from transfers.models import CANCELABLE, OPEN, State, Transfer, What
from transfers.settling import (
    ARRIVED,
    NEVER_ARRIVED,
    Owner,
    book_as_returned,
    conclude,
    overdue,
    settle_by_hand,
)

__all__ = [
    "ARRIVED", "NEVER_ARRIVED", "AlreadyTold", "NotBookedAsSent", "NotOverdue", "Owner",
    "book_as_returned", "cancel", "conclude", "exists", "hear", "is_unsent", "overdue", "queue",
    "release", "settle_by_hand", "taking_back", "weigh", "work",
]  # fmt: skip

log = logging.getLogger("transfers")
# Calls side by side in one worker.
LINES = 8
# No new round after so many seconds: a bank that hangs must not hold up what else the worker has to do.
PATIENCE_SECONDS = 5.0
# Runs at once in one worker, and for one purpose by one route: the others go by where a bank is silent.
RUNS, RUNS_OF_ROUTE = 8, 2
_runs = Slots()


def queue(order: Order, *, route: str, at: datetime, merchant_id: str, is_held: bool = False) -> Transfer:
    """Store an order to be carried out from `at` on, at that merchant's bank. In the caller's transaction.

    is_held: it waits for approval; `release` queues it.
    """
    state = State.HELD if is_held else State.QUEUED
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
    steps.note(transfer.id, What(state), at=at)
    return transfer


def release(order_id: str, *, now: datetime) -> None:
    """Held becomes queued, in the caller's transaction: it is approved. Raises IllegalMove."""
    steps.move(Transfer.objects.locked(order_id), State.QUEUED, at=now, due_at=now)


def cancel(order_id: str, *, now: datetime) -> None:
    """Held or queued becomes canceled, in the caller's transaction. Raises AlreadyTold."""
    transfer = Transfer.objects.locked(order_id)
    if transfer.state not in CANCELABLE:
        raise AlreadyTold(order_id)
    steps.move(transfer, State.CANCELED, at=now, ended_at=now)


def taking_back(transaction_ids: Iterable[str], *, route: str, amount: int) -> list[str]:
    """Our orders to take back a payment of `amount` satang, carried out or not yet: its bank answers them by
    telling so. None where they are for less."""
    if not banks.voids(route):
        return []
    made = Transfer.objects.filter(route=route, charge_id__in=[name for name in transaction_ids if name])
    orders = dict(made.filter(state__in=[*OPEN, State.SUCCEEDED]).values_list("pk", "amount"))
    return list(orders) if sum(orders.values()) == amount else []


def work(purpose: Purpose, owner: Owner, *, now: Callable[[], datetime], limit: int = 50) -> int:
    """Send and inquire what is due, up to `limit`; returns how many were taken up.

    May run many times at once. A crash anywhere ends in an inquiry, never in a second sending.
    """
    taken = 0
    for route in Transfer.objects.due_routes(purpose, now()):
        with suppress(NoFreeSlot), _runs.held(f"{purpose} {route}", total=RUNS, share=RUNS_OF_ROUTE):
            taken += _work_by(route, purpose, owner, now, limit - taken)
    return taken


def _work_by(route: str, purpose: Purpose, owner: Owner, now: Callable[[], datetime], limit: int) -> int:
    taken, ends_at = 0, time.monotonic() + PATIENCE_SECONDS
    while taken < limit and time.monotonic() < ends_at:
        claimed = settling.claim(purpose, route, now=now(), limit=min(LINES, limit - taken))
        if not claimed:
            break
        taken += len(claimed)
        _carry_out(claimed, owner, now)
    return taken


def hear(notice: OrderNotice, owner: Owner, *, now: datetime) -> None:
    """The bank's word of its own accord settles a transfer as an inquiry would; the same again is nothing."""
    word = Word(notice.fate, notice.reference, notice.failure_code)
    settling.settle(notice.order_id, word, owner, now=now)


def weigh(notice: OrderNotice, *, bank: str) -> Literal["new", "repeat", "conflict"]:
    """What a notice of `bank` would change. An order that this bank was not told of is a conflict."""
    told = Transfer.objects.filter(pk=notice.order_id, route__in=[f"bank:{bank}", f"acquirer:{bank}"])
    transfer = told.first()
    fates = None if transfer is None else settling.FATES.get((State(transfer.state), notice.fate))
    if fates is None:
        return "conflict"
    return "new" if fates else "repeat"


def is_unsent(order_id: str) -> bool:
    """Whether it waits to be sent: no bank was told of it, or it surely never arrived there."""
    return bool(Transfer.objects.filter(pk=order_id, state=State.QUEUED).exists())


def exists(order_id: str) -> bool:
    """Whether it is an order of ours, whoever was told of it."""
    return Transfer.objects.filter(pk=order_id).exists()


@dataclass(frozen=True, slots=True)
class _Errand:
    """One call to be made: the first about its order, or an inquiry."""

    transfer: Transfer
    is_sending: bool
    call: Callable[[], Word]


def _carry_out(claimed: list[Transfer], owner: Owner, now: Callable[[], datetime]) -> None:
    prepared = [_prepared(transfer, owner, now()) for transfer in claimed]
    errands = [errand for errand in prepared if errand is not None]
    words = calling.timed_at_once([errand.call for errand in errands], silence=Word("unknown"))
    for errand, word in zip(errands, words, strict=True):
        _note(errand, word.said, owner, now())
    parties = [Party.of(errand.transfer.route, errand.transfer.merchant_id) for errand in errands]
    silences = [breakers.is_silence(word.said.fate, word.seconds) for word in words]
    breakers.record(zip(parties, silences, strict=True), now=now())


def _prepared(transfer: Transfer, owner: Owner, now: datetime) -> _Errand | None:
    """None if there is nothing to do for us; what fails is logged and comes due again by its lease."""
    try:
        sender, order = banks.sender(transfer.route, links.of(transfer.merchant_id)), transfer.order
        if transfer.state == State.TOLD:
            return _Errand(transfer, False, lambda: sender.inquire(order))
        if settling.begin(transfer.id, owner, now=now):
            return _Errand(transfer, True, lambda: sender.send(order))
    except Exception:
        log.exception("transfer %s could not be taken up", transfer.id)
    return None


def _note(errand: _Errand, word: Word, owner: Owner, now: datetime) -> None:
    try:
        settling.note(errand.transfer, word, owner, was_sent=errand.is_sending, now=now)
    except Exception:
        log.exception("the bank's word on transfer %s could not be noted", errand.transfer.id)
