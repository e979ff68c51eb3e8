"""Apply reversals: a bank takes back money that it had reported as a credit."""

import logging
from datetime import datetime

from approvals import services as approvals
from core.database import rows
from ledger import accounts, services as ledger
from ledger.journal_types import JournalType
from payments.models import Payment
from reconciliation.matching import returns
from reconciliation.models import (
    BankTransaction,
    Excess,
    MatchResult,
    Resolution,
    ResolutionState,
    ResolutionType,
    listing,
)
from refunds import completion as refunds
from transfers import services as transfers

log = logging.getLogger("reconciliation")
NOT_APPLIED = [MatchResult.PENDING, MatchResult.UNMATCHED]
# Without the last condition on the later id the planner does not use the partial index.
UNAPPLIED = """
WHERE t.bank = %s AND t.kind = 'reversal' AND (
    t.bank_reference IN (%s, %s)
    OR t.later_bank_reference IN (%s, %s) AND t.later_bank_reference <> ''
) AND t.match_result = ANY(%s) AND t.resolution_state = ANY(%s)
ORDER BY t.id LIMIT 1 FOR NO KEY UPDATE
"""


def own_reversal_orders(credit: BankTransaction) -> list[str]:
    """Return our orders to void the credit. The bank reports their result as a reversal."""
    route = accounts.bank(credit.bank)
    return transfers.matching_voids(credit.bank_references, route=route, amount=credit.amount)


def find_unapplied(credit: BankTransaction, *also_resolved: ResolutionState) -> BankTransaction | None:
    """The locked reversal that came before its credit or was not applied. also_resolved: besides open."""
    first, last = credit.bank_references[0], credit.bank_references[-1]
    states = [ResolutionState.OPEN, *also_resolved]
    found = rows.find(BankTransaction, UNAPPLIED, credit.bank, first, last, first, last, NOT_APPLIED, states)
    return found[0] if found else None


def apply(
    reversal: BankTransaction, credit: BankTransaction | None, payment: Payment | None, *, now: datetime
) -> None:
    """Match a reversal and move its money. The caller has locked payment, credit and reversal.

    It waits for staff if there is no credit or a smaller one, or if the money is already being returned to
    the payer: then it has left twice, and staff must ask the bank.

    payment: None if the credit has no owner or is still in suspense.
    """
    match_result = MatchResult.UNMATCHED
    if credit is not None and reversal.amount <= credit.amount:
        match_result = _match_reversal(reversal, credit, payment, now)
    if match_result == reversal.match_result:
        return
    if reversal.resolution_state != ResolutionState.OPEN:
        reopen(reversal, now=now)
    reversal.match_result, reversal.matched_at = match_result, now
    if credit is not None and match_result != MatchResult.UNMATCHED:
        reversal.payment, reversal.merchant = credit.payment, credit.merchant
    reversal.save(update_fields=["match_result", "matched_at", "payment", "merchant"])
    if match_result == MatchResult.UNMATCHED:
        listing.show([reversal.listed()])
    else:
        listing.close(reversal.id)
    approvals.cancel(reversal.id, now=now)  # of a write-off
    log.warning("reversal %s of %s: %s", reversal.id, reversal.bank, reversal.match_result)


def find_due(credit: BankTransaction, *, is_new: bool = False) -> BankTransaction | None:
    """Lock and return the reversal that waited for this credit, or for its resolution.

    is_new: the credit was unknown until now, so its reversal can have been dismissed. The caller has locked
    the credit and posted nothing: locks of accounts come last.
    """
    dismissed = [ResolutionState.DISMISSED] if is_new else []
    return find_unapplied(credit, ResolutionState.WRITTEN_OFF, *dismissed)


def reopen(reversal: BankTransaction, *, now: datetime) -> None:
    """Undo a resolution. The caller holds the lock."""
    if reversal.resolution_state == ResolutionState.WRITTEN_OFF:
        write_offs = Resolution.objects.filter(subject_id=reversal.id, type=ResolutionType.WRITTEN_OFF)
        subject_id, route = write_offs.latest("id").ledger_subject_id, accounts.bank(reversal.bank)
        ledger.recover_write_off(subject_id=subject_id, amount=reversal.amount, to=route, now=now)
    reversal.resolve(ResolutionState.OPEN, now=now)


def _match_reversal(
    reversal: BankTransaction, credit: BankTransaction, payment: Payment | None, now: datetime
) -> MatchResult:
    if reversal.amount == credit.amount and own_reversal_orders(credit):
        return MatchResult.ORDERED
    if credit.is_credited and payment is not None:
        # A payment is reversed once: staff ask about a second report.
        is_taken = not refunds.reversed_amount(payment) and _take_credited(reversal, credit, payment, now)
    else:
        is_whole = credit.match_result != MatchResult.PENDING and reversal.amount == credit.amount
        is_taken = is_whole and _release_from_suspense(reversal, credit, now)
    return MatchResult.REVERSED if is_taken else MatchResult.UNMATCHED


def _take_credited(
    reversal: BankTransaction, credit: BankTransaction, payment: Payment, now: datetime
) -> bool:
    """Take credited money from the merchant, and the excess from suspense if all of it is reversed."""
    excess = returns.find_excess(credit)
    if excess is None or reversal.amount <= credit.amount - excess.amount:
        _debit_merchant(reversal, credit, payment, now)
        return True
    if reversal.amount < credit.amount or not _can_take(excess, credit, now):
        return False
    excess.resolve(ResolutionState.TAKEN_BACK, now=now)
    _debit_merchant(reversal, credit, payment, now, held=excess.amount)
    return True


def _debit_merchant(
    reversal: BankTransaction, credit: BankTransaction, payment: Payment, now: datetime, *, held: int = 0
) -> None:
    """Take the money from the merchant. Unconfirmed money is in its own account, so the balance stays.

    held: the satang of it that are held for staff.
    """
    route, amount = accounts.bank(reversal.bank), reversal.amount - held
    refunds.record_reversal(payment, reversal_id=reversal.id, route=route, amount=amount, now=now)
    ledger.reverse(
        merchant_id=payment.merchant_id,
        subject_id=reversal.id,
        source_id=payment.id,
        amount=amount,
        to=route,
        now=now,
        from_suspense=held,
        is_confirmed=credit.is_confirmed,
    )


def _release_from_suspense(reversal: BankTransaction, credit: BankTransaction, now: datetime) -> bool:
    """Take held money out of suspense if it is still there."""
    if not _can_take(credit, credit, now):
        return False
    credit.resolve(ResolutionState.TAKEN_BACK, now=now)
    route = accounts.bank(reversal.bank)
    ledger.send_back(
        subject_id=reversal.id, amount=reversal.amount, to=route, now=now, type=JournalType.REVERSAL
    )
    return True


def _can_take(held: BankTransaction | Excess, credit: BankTransaction, now: datetime) -> bool:
    """Whether held money is still here. Cancels a return that its bank has not got yet."""
    if held.resolution_state == ResolutionState.SENDING_BACK:
        return returns.cancel_pending(credit, now=now)
    return held.resolution_state == ResolutionState.OPEN
