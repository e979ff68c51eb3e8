"""The excess of over-payments: the part of an accepted credit that goes back to its payer.

Returns and reversals ask here which part of a bank transaction is held for staff.
"""

from datetime import datetime

from reconciliation.models import (
    BankTransaction,
    BankTransactionKind,
    Excess,
    MatchResult,
    ResolutionState,
)


def find(movement: BankTransaction) -> Excess | None:
    """The excess of an accepted over-payment. The lock of the bank transaction is its lock too."""
    can_have_one = (
        movement.resolution_state == ResolutionState.ACCEPTED
        and movement.match_result == MatchResult.AMOUNT_MISMATCH
        and movement.kind == BankTransactionKind.CREDIT
    )
    return Excess.objects.filter(movement=movement).first() if can_have_one else None


def find_open(movement: BankTransaction) -> Excess | None:
    """The excess if it waits for a decision of staff."""
    excess = find(movement)
    return excess if excess is not None and excess.resolution_state == ResolutionState.OPEN else None


def held_part(movement: BankTransaction) -> BankTransaction | Excess:
    """What is or was held for staff: the excess if there is one, else all of the bank transaction."""
    return find(movement) or movement


def create(movement: BankTransaction, amount: int, *, now: datetime) -> Excess:
    """The caller holds the lock of the bank transaction and has credited the rest of it."""
    excess: Excess = Excess.objects.create(movement=movement, amount=amount, created_at=now)
    excess.publish_state()
    return excess
