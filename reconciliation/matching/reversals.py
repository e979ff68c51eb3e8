"""A bank takes back what it had reported: the one way in which money leaves that nobody here asked for."""

import logging
from collections.abc import Sequence
from datetime import datetime

from django.db.models import Q

from approvals import services as approvals
from core import rows
from ledger import accounts
from ledger import services as ledger
from ledger.models import JournalType
from payments.models import Payment
from reconciliation.exceptions import duplicates, returns
from reconciliation.matching import deduplication
from reconciliation.models import (
    BankTransaction,
    BankTransactionKind,
    MatchResult,
    Resolution,
    ResolutionState,
    ResolutionType,
)
from refunds import completion as refunds
from transfers import services as transfers

log = logging.getLogger("reconciliation")
NOT_APPLIED = [MatchResult.PENDING, MatchResult.UNMATCHED]
# Without the join the planner can choose to read all bank transactions of the bank.
FIND_REVERSED = """
SELECT wanted.id FROM unnest(%s::text[], %s::text[]) AS wanted (id, bank)
JOIN reconciliation_banktransaction AS reversal
    ON reversal.bank_transaction_id = wanted.id AND reversal.bank = wanted.bank AND reversal.kind = %s
"""


def find_credit(reversal: BankTransaction) -> BankTransaction | None:
    """The credit of the same transaction, by any name of either; of one that was merged, the other."""
    found = (
        deduplication.find_by_bank_id(reversal.bank, name, BankTransactionKind.CREDIT)
        for name in reversal.bank_transaction_ids
    )
    credit = next((credit for credit in found if credit is not None), None)
    return None if credit is None else duplicates.merged_into(credit)


def own_reversal_orders(credit: BankTransaction) -> list[str]:
    """Our own orders to take all of it back, which the bank answers by telling of the reversal."""
    return transfers.matching_voids(
        credit.bank_transaction_ids, route=accounts.bank(credit.bank), amount=credit.amount
    )


def is_not_applied(reversal: BankTransaction) -> bool:
    """Whether nothing was taken yet, and nobody has decided that nothing will be."""
    return reversal.match_result in NOT_APPLIED and reversal.resolution_state != ResolutionState.DISMISSED


def find_unapplied(credit: BankTransaction, *also_resolved: ResolutionState) -> BankTransaction | None:
    """The reversal of a credit that came before the credit, or could not be carried out, under its lock.

    decided: also one about which staff have decided so.
    """
    # The empty name is left out for the planner, see `joining.named`.
    second = Q(later_bank_transaction_id__in=credit.bank_transaction_ids) & ~Q(later_bank_transaction_id="")
    waiting = BankTransaction.objects.filter(
        Q(bank_transaction_id__in=credit.bank_transaction_ids) | second,
        bank=credit.bank,
        kind=BankTransactionKind.REVERSAL,
        match_result__in=NOT_APPLIED,
        resolution_state__in=[ResolutionState.OPEN, *also_resolved],
    )
    found: BankTransaction | None = waiting.select_for_update(no_key=True).first()
    return found


def reversed_ids(credits: Sequence[BankTransaction]) -> set[str]:
    """Return those of the credits' bank transaction ids that a reversal has too."""
    if not credits:
        return set()
    ids, banks = ([getattr(credit, name) for credit in credits] for name in ("bank_transaction_id", "bank"))
    found = rows.run(FIND_REVERSED, [ids, banks, BankTransactionKind.REVERSAL]).fetchall()
    return {bank_transaction_id for (bank_transaction_id,) in found}


def apply(
    reversal: BankTransaction, credit: BankTransaction | None, payment: Payment | None, *, now: datetime
) -> None:
    """Judge a reversal and move its money. The caller holds the locks: payment, credit, reversal.

    It waits for staff where there is nothing to take back, or not as much, or where the money is already on
    its way to the payer: then it has left twice, and only people can ask the bank.
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
    approvals.cancel(reversal.id, now=now)  # of a write-off
    log.warning("reversal %s of %s: %s", reversal.id, reversal.bank, reversal.match_result)


def find_due(credit: BankTransaction, *, is_new: bool = False) -> BankTransaction | None:
    """The reversal that waited for this credit, or for what has become of it, under its lock.

    is_news: nobody knew of the credit until now, so that staff could but dismiss its reversal. The caller
    holds the credit's lock, and has posted nothing yet: locks of accounts come last.
    """
    return find_unapplied(
        credit, ResolutionState.WRITTEN_OFF, *([ResolutionState.DISMISSED] if is_new else [])
    )


def apply_if_due(
    reversal: BankTransaction | None, credit: BankTransaction, payment: Payment | None, *, now: datetime
) -> None:
    """Carry out what `find_due` found. The caller holds the locks: payment, credit.

    payment: None where the credit is nobody's, or still in suspense.
    """
    if reversal is not None:
        apply(reversal, credit, payment, now=now)


def reopen(reversal: BankTransaction, *, now: datetime) -> None:
    """What staff decided about it is so no more: we have what they had not, or they were wrong.

    The caller holds the reversal's lock.
    """
    if reversal.resolution_state == ResolutionState.WRITTEN_OFF:
        write_off = Resolution.objects.filter(subject_id=reversal.id, type=ResolutionType.WRITTEN_OFF).latest(
            "id"
        )
        route = accounts.bank(reversal.bank)
        ledger.recover_write_off(
            subject_id=write_off.ledger_subject, amount=reversal.amount, to=route, now=now
        )
    reversal.resolve(ResolutionState.OPEN, now=now)


def _match_reversal(
    reversal: BankTransaction, credit: BankTransaction, payment: Payment | None, now: datetime
) -> MatchResult:
    if reversal.amount == credit.amount and own_reversal_orders(credit):
        return MatchResult.ORDERED
    return MatchResult.REVERSED if _take_money(reversal, credit, payment, now) else MatchResult.UNMATCHED


def _take_money(
    reversal: BankTransaction, credit: BankTransaction, payment: Payment | None, now: datetime
) -> bool:
    """False where nothing can be taken. Of a payment only once: who tells of it again has to be asked."""
    if credit.is_credited and payment is not None:
        if refunds.reversed_amount(payment):
            return False
        _debit_merchant(reversal, credit, payment, now)
        return True
    return (
        credit.match_result != MatchResult.PENDING
        and reversal.amount == credit.amount
        and _release_from_suspense(reversal, credit, now)
    )


def _debit_merchant(
    reversal: BankTransaction, credit: BankTransaction, payment: Payment, now: datetime
) -> None:
    """Money that nobody has confirmed is still where it came in: the balance is not touched for it."""
    route = accounts.bank(reversal.bank)
    refunds.record_reversal(payment, reversal_id=reversal.id, route=route, amount=reversal.amount, now=now)
    reverse = ledger.reverse if credit.is_confirmed else ledger.reverse_unconfirmed
    reverse(
        merchant_id=payment.merchant_id,
        type=JournalType.REVERSAL,
        subject_id=reversal.id,
        amount=reversal.amount,
        to=route,
        now=now,
    )


def _release_from_suspense(reversal: BankTransaction, credit: BankTransaction, now: datetime) -> bool:
    """Out of suspense, where it still is."""
    if credit.resolution_state == ResolutionState.SENDING_BACK and not returns.cancel_pending(
        credit, now=now
    ):
        return False
    if credit.resolution_state not in (ResolutionState.OPEN, ResolutionState.SENDING_BACK):
        return False
    credit.resolve(ResolutionState.TAKEN_BACK, now=now)
    route = accounts.bank(reversal.bank)
    ledger.send_back(
        subject_id=reversal.id, amount=reversal.amount, to=route, now=now, type=JournalType.REVERSAL
    )
    return True
