"""Payments whose callbacks were lost: the lines of a batch make them succeed together, by few statements.

Only what is plain is done here. Whatever else may be the matter, `reconciliation.matching.services` knows.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime

from core import rows
from ledger import accounts
from payments import services as payments
from payments.models import Payment
from payments.services import PaidPayment
from reconciliation.matching import (
    crediting,
    deduplication,
)
from reconciliation.matching import services as matching
from reconciliation.matching.match_rules import match_result_for
from reconciliation.models import BankTransaction, BankTransactionKind, MatchResult
from reconciliation.statements.line_storage import transaction_by_index

FIND_PAYMENTS = """
SELECT code.biller_id, code.reference1, code.payment_id
FROM qrcodes_qrcode AS code JOIN merchants_merchant AS merchant ON merchant.id = code.merchant_id
WHERE code.reference1 = ANY(%s) AND merchant.bank = %s
"""
# A join, or the planner may prefer to read all bank transactions of the bank.
FIND_REVERSED = """
SELECT name FROM unnest(%s::text[]) AS name JOIN reconciliation_banktransaction AS debit
    ON debit.bank_transaction_id = name AND debit.bank = %s AND debit.kind = %s
"""
# Another report of money for the payment went back to the payer: whether this is that money is asked alone.
FIND_RETURNED = """
SELECT payment_id FROM reconciliation_banktransaction
WHERE payment_id = ANY(%s) AND resolution_state IN ('sending_back', 'sent_back')
"""
FOR_UPDATE = "ORDER BY t.id FOR NO KEY UPDATE"
TransactionAndPayment = tuple[BankTransaction, Payment]


@transaction_by_index()
def credit_payments(bank: str, movements: Sequence[BankTransaction], now: datetime) -> set[str]:
    """Apply those by which a payment plainly succeeds; returns the ids of the others that wait.

    movements: credits of references that we gave. Locks as in `services.apply`: turns, payments, bank
    transactions; of each kind in one order for everybody.
    """
    deduplication.lock_names([matching.pairing_lock_name(movement) for movement in movements])
    payments_by_reference = _lock_payments(bank, movements)
    found = _lock_unmatched(movements)
    reversed_ids = _reversed_ids(bank, found)
    pairs = [
        (movement, payments_by_reference[_reference_key(movement)])
        for movement in found
        if _reference_key(movement) in payments_by_reference
    ]
    lines_per_payment = Counter(payment.id for _, payment in pairs)
    returned = {payment_id for (payment_id,) in rows.run(FIND_RETURNED, [list(lines_per_payment)]).fetchall()}
    unambiguous = [
        (movement, payment)
        for movement, payment in pairs
        if lines_per_payment[payment.id] == 1
        and payment.id not in returned
        and movement.bank_transaction_id not in reversed_ids
        and _is_unambiguous(movement, payment)
    ]
    _succeed(bank, unambiguous, now)
    return {movement.id for movement in found} - {movement.id for movement, _ in unambiguous}


def _lock_payments(bank: str, movements: Sequence[BankTransaction]) -> dict[tuple[str, str], Payment]:
    """By biller and reference, under their locks."""
    codes = rows.run(FIND_PAYMENTS, [[movement.reference1 for movement in movements], bank]).fetchall()
    wanted = [payment_id for *_, payment_id in codes]
    locked = {
        payment.id: payment for payment in rows.find(Payment, f"WHERE t.id = ANY(%s) {FOR_UPDATE}", wanted)
    }
    return {(biller_id, reference1): locked[payment_id] for biller_id, reference1, payment_id in codes}


def _lock_unmatched(movements: Sequence[BankTransaction]) -> list[BankTransaction]:
    """Under their locks. Others may have judged some of them."""
    wanted = [movement.id for movement in movements]
    return rows.find(
        BankTransaction,
        f"WHERE t.id = ANY(%s) AND t.match_result = %s {FOR_UPDATE}",
        wanted,
        MatchResult.PENDING,
    )


def _reversed_ids(bank: str, movements: Sequence[BankTransaction]) -> set[str]:
    """Of their names, which are still ours alone, those that a debit was given too."""
    names = [movement.bank_transaction_id for movement in movements]
    return {
        name for (name,) in rows.run(FIND_REVERSED, [names, bank, BankTransactionKind.REVERSAL]).fetchall()
    }


def _is_unambiguous(movement: BankTransaction, payment: Payment) -> bool:
    """What the bank has named since it was stored it may have taken back as well."""
    return (
        not movement.later_bank_transaction_id and match_result_for(movement, payment) == MatchResult.APPLIED
    )


def _succeed(bank: str, unambiguous: Sequence[TransactionAndPayment], now: datetime) -> None:
    if not unambiguous:
        return
    for movement, payment in unambiguous:
        payments.store_expiry(payment, now)
        movement.match_result, movement.matched_at = MatchResult.APPLIED, now
        movement.payment, movement.merchant_id = payment, payment.merchant_id
    rows.update_rows(
        [movement for movement, _ in unambiguous], ["match_result", "matched_at", "payment", "merchant"]
    )
    paid = [
        PaidPayment(payment, movement.paid_at, crediting.payer_of(movement), movement.is_confirmed)
        for movement, payment in unambiguous
    ]
    payments.succeed_all(paid, source=accounts.bank(bank), now=now)


def _reference_key(movement: BankTransaction) -> tuple[str, str]:
    return movement.biller_id, movement.reference1
