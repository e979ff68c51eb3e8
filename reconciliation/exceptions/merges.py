"""Two reports that staff know to be one bank transaction: the one that waits counts no more.

Both reports stay as the bank made them, so that the bank's ids and lines are known when they come again.
"""

from datetime import datetime

from core import ids
from ledger import accounts
from ledger import services as ledger
from reconciliation.exceptions import resolution_records
from reconciliation.models import BankTransaction, Resolution, ResolutionState, ResolutionType


def merge(
    movement: BankTransaction, other: BankTransaction, *, actor: str, note: str, now: datetime
) -> Resolution:
    """The money of `movement` leaves suspense, because `other` counts. The caller holds the locks of both."""
    movement.resolve(ResolutionState.MERGED, now=now)
    resolution = resolution_records.draft(
        movement.id, ResolutionType.MERGED, actor, note, now, movement.payment_id
    )
    resolution.merged_into_id = other.id
    # The ledger posts a fact once about each subject.
    resolution.ledger_subject_id = ids.new("mrg_", now) if resolution.reopen_count else movement.id
    bank = accounts.bank(movement.bank)
    ledger.merge(subject_id=resolution.ledger_subject, amount=movement.amount, bank=bank, now=now)
    return resolution_records.save(resolution)


def undo(movement: BankTransaction, *, now: datetime) -> None:
    """There are two transactions after all: the money waits again.

    The caller holds the bank transaction's lock.
    """
    bank = accounts.bank(movement.bank)
    ledger.unmerge(
        subject_id=_merge_resolution(movement).ledger_subject, amount=movement.amount, bank=bank, now=now
    )
    movement.resolve(ResolutionState.OPEN, now=now)


def merged_into(movement: BankTransaction) -> BankTransaction:
    """The bank transaction that counts: the bank transaction, or the one that it was merged with."""
    while movement.resolution_state == ResolutionState.MERGED:
        movement = BankTransaction.objects.get(pk=_merge_resolution(movement).merged_into_id)
    return movement


def _merge_resolution(movement: BankTransaction) -> Resolution:
    return Resolution.objects.filter(subject_id=movement.id, type=ResolutionType.MERGED).latest("id")
