"""Each step of a transfer, in a commit of its own."""

import logging
from datetime import datetime, timedelta
from typing import Any, Protocol

from django.db import transaction
from django.db.models import F, Q
from django.db.models.functions import Now

from banks import Fate, Purpose, Word
from transfers import breakers, contradictions, schedule, steps
from transfers.errors import NotBookedAsSent, NotOverdue
from transfers.models import State, Transfer, What

log = logging.getLogger("transfers")
# Longer than a round of `banks.calling` and what is written down after it.
LEASE = timedelta(seconds=60)
DEFAULT_CODES: dict[Fate, str] = {"failed": "rejected_by_bank", "returned": "returned_by_bank"}
# What staff may find when they ask a silent bank: it has no such order and takes none, or the money arrived.
NEVER_ARRIVED, ARRIVED = Word("failed", failure_code="never_arrived"), Word("succeeded")
# What a last word does to a transfer, one after the other. What is not here contradicts what we know.
FATES: dict[tuple[State, Fate], tuple[Fate, ...]] = {
    (State.TOLD, "succeeded"): ("succeeded",),
    (State.TOLD, "failed"): ("failed",),
    (State.TOLD, "returned"): ("succeeded", "returned"),  # it came back before we heard that it had arrived
    (State.SUCCEEDED, "succeeded"): (),
    (State.SUCCEEDED, "returned"): ("returned",),
    (State.FAILED, "failed"): (),
    (State.RETURNED, "returned"): (),
    (State.RETURNED, "succeeded"): (),
}


class Owner(Protocol):
    """What a transfer is for, such as a refund: told of each step in the commit of the step."""

    def lock(self, order_id: str) -> None:
        """Lock the payment and the owner's own row, in this order; the transfer is locked after it."""

    def is_held(self, order_id: str, *, now: datetime) -> bool:
        """Whether the bank must not be told for now; asked in the commit that would tell it, after `lock`."""

    def begin(self, order_id: str, *, now: datetime) -> None:
        """The bank is about to be told. Comes again if it surely never heard of it the time before."""

    def settle(self, order_id: str, word: Word, *, now: datetime) -> None:
        """The last word: `succeeded`, `failed` or, after a success, `returned`; each comes once."""


@transaction.atomic
def claim(purpose: Purpose, route: str, *, now: datetime, limit: int) -> list[Transfer]:
    """Up to `limit` transfers that are due, leased to the caller. No two workers get the same.

    None of a counterparty that rests.
    """
    resting = breakers.resting(route, now)
    if resting and not route.startswith("bank:"):  # an acquirer rests for all merchants
        return []
    free = Q(lease_until__isnull=True) | Q(lease_until__lte=Now())
    ours = Transfer.objects.due(purpose, route, now).filter(free).exclude(merchant_id__in=resting)
    due = ours.select_for_update(skip_locked=True, no_key=True)
    claimed = list(due[:limit])
    Transfer.objects.filter(pk__in=[transfer.pk for transfer in claimed]).update(lease_until=Now() + LEASE)
    return claimed


@transaction.atomic
def begin(order_id: str, owner: Owner, *, now: datetime) -> bool:
    """Queued becomes told, before the call. False if it is held or no longer queued: it must not be sent."""
    owner.lock(order_id)
    transfer = Transfer.objects.locked(order_id)
    if transfer.state != State.QUEUED:
        return False
    if owner.is_held(order_id, now=now):
        _hold(transfer, now)
        return False
    due_at, lease_until = now + schedule.next_inquiry(0), transfer.lease_until
    steps.move(transfer, State.TOLD, at=now, told_at=now, due_at=due_at, lease_until=lease_until)
    owner.begin(order_id, now=now)
    return True


def note(transfer: Transfer, word: Word, owner: Owner, *, was_sent: bool, now: datetime) -> None:
    """Write down what came of a sending, or else of an inquiry."""
    if not was_sent:
        steps.note(transfer.id, What.INQUIRY, at=now, said=word.fate)
    if word.fate in ("succeeded", "failed", "returned"):
        settle(transfer.id, word, owner, now=now)
    elif word.fate == "not_sent" and was_sent:
        _give_back(transfer, now)
    else:
        _wait(transfer, word, 0 if was_sent else transfer.inquiries + 1, now)


@transaction.atomic
def settle(order_id: str, word: Word, owner: Owner, *, now: datetime) -> None:
    """The bank's last word. The same again changes nothing; one that contradicts is an exception."""
    transfer = _locked(order_id, owner)
    fates = FATES.get((State(transfer.state), word.fate))
    if fates is None:
        contradictions.record(
            order_id,
            merchant_id=transfer.merchant_id,
            route=transfer.route,
            amount=transfer.amount,
            state=transfer.state,
            answer=word.fate,
            bank_reference=word.reference,
            now=now,
        )
        return
    for fate in fates:
        _step(transfer, fate, word, owner, now=now)


@transaction.atomic
def conclude(order_id: str, owner: Owner, *, now: datetime) -> None:
    """The bank tells of its own accord that it has done what it was told, or was about to be told."""
    transfer = _locked(order_id, owner)
    if transfer.state == State.QUEUED:
        steps.move(transfer, State.TOLD, at=now, told_at=now, due_at=now)
        owner.begin(order_id, now=now)
    for fate in FATES[State(transfer.state), "succeeded"]:
        _step(transfer, fate, ARRIVED, owner, now=now)


def overdue(order_id: str, *, now: datetime) -> Transfer:
    """The order under its lock, if its bank has been silent for long. Raises NotOverdue.

    What counts is when the bank was told, not when it was ordered: no call may still be under way. The caller
    holds the owner's locks.
    """
    transfer = Transfer.objects.locked(order_id)
    if transfer.state != State.TOLD or (transfer.told_at or now) > now - schedule.OVERDUE:
        raise NotOverdue(order_id)
    return transfer


@transaction.atomic
def settle_by_hand(order_id: str, word: Word, owner: Owner, *, by: str, now: datetime) -> None:
    """`NEVER_ARRIVED` or `ARRIVED`, as the bank told `by` of staff.

    Raises NotOverdue, as at a second click.
    """
    owner.lock(order_id)
    transfer = overdue(order_id, now=now)
    _step(transfer, word.fate, word, owner, now=now, settled_by=by)
    log.warning("%s ended transfer %s by hand: %s", by, order_id, word.fate)


@transaction.atomic
def book_as_returned(order_id: str, owner: Owner, *, by: str, now: datetime) -> None:
    """The bank told `by` of staff that what it had reported as sent never arrived. Raises NotBookedAsSent."""
    transfer = _locked(order_id, owner)
    if transfer.state != State.SUCCEEDED:
        raise NotBookedAsSent(order_id)
    _step(transfer, "returned", Word("returned"), owner, now=now)
    log.warning("%s booked transfer %s as returned", by, order_id)


def _hold(transfer: Transfer, now: datetime) -> None:
    """Try again later. Only the beginning of a hold is written down."""
    Transfer.objects.filter(pk=transfer.pk).update(due_at=now + schedule.next_try(), lease_until=None)
    if steps.last(transfer.id) != What.HELD:
        steps.note(transfer.id, What.HELD, at=now)


def _locked(order_id: str, owner: Owner) -> Transfer:
    owner.lock(order_id)
    return Transfer.objects.locked(order_id)


def _step(transfer: Transfer, fate: Fate, word: Word, owner: Owner, *, now: datetime, **fields: str) -> None:
    code = word.failure_code or DEFAULT_CODES[fate] if fate in DEFAULT_CODES else ""
    reference = word.reference or transfer.bank_reference
    known: dict[str, Any] = {"failure_code": code, "bank_reference": reference, "ended_at": now}
    steps.move(transfer, State(fate), at=now, **known, **fields)
    owner.settle(transfer.id, Word(fate, reference, code), now=now)


@transaction.atomic
def _give_back(transfer: Transfer, now: datetime) -> None:
    """It surely never reached the bank, and nobody asked there in the meantime: it may be sent again."""
    untouched = Transfer.objects.filter(pk=transfer.id, state=State.TOLD, inquiries=0)
    due_at = now + schedule.next_sending(now - transfer.created_at)
    if untouched.update(state=State.QUEUED, due_at=due_at, lease_until=None):
        steps.note(transfer.id, What.UNREACHED, at=now)


def _wait(transfer: Transfer, word: Word, inquiries: int, now: datetime) -> None:
    waiting = Transfer.objects.filter(pk=transfer.id, state=State.TOLD)
    waiting.update(
        inquiries=inquiries,
        due_at=now + schedule.next_inquiry(inquiries),
        bank_reference=word.reference or F("bank_reference"),
        lease_until=None,
    )
