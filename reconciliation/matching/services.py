"""Match bank transactions with payments and act on the result, once each."""

import logging
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TypeVar

from django.db import transaction
from django.db.models import Model

from core.database import rows
from core.failures import DECLINED_BY_BANK
from ledger import accounts
from ledger import services as ledger
from merchants.models import LateMoneyPolicy
from payments import exceptions, expiry_sweep
from payments import services as payments
from payments.models import Payment, PaymentException, PaymentStatus
from reconciliation.matching import (
    confirmation,
    crediting,
    deduplication,
    match_rules,
    order_completion,
    probable_duplicates,
    reversals,
)
from reconciliation.models import HELD_RESULTS, BankTransaction, BankTransactionKind, MatchResult, listing
from refunds import services as refunds

log = logging.getLogger("reconciliation")
# The request that stores a bank transaction applies it at once. If 2 s have passed, the process has crashed.
UNAPPLIED_AFTER = timedelta(seconds=2)
FIND_PAYMENTS = """
SELECT code.payment_id, code.biller_id, code.reference1
FROM qrcodes_qrcode AS code JOIN merchants_merchant AS merchant ON merchant.id = code.merchant_id
WHERE code.reference1 = ANY(%s) AND merchant.bank = %s
"""
M = TypeVar("M", bound=Model)


class PaymentChanged(Exception):
    """The bank transaction was attached to another payment meanwhile."""


@dataclass(slots=True)
class Match:
    """A bank transaction, the payment that its reference names, and the result; both rows are locked."""

    bank_transaction: BankTransaction
    payment: Payment | None
    result: MatchResult = MatchResult.PENDING


def apply(
    *, bank_transaction_id: str, now: datetime, bank_transaction: BankTransaction | None = None
) -> BankTransaction:
    """Match a bank transaction and act on the result in one commit.

    The result of an earlier call does not change. But a reversal may have waited until the credit got its
    bank id, and a later report may have more details of the payer.

    bank_transaction: given if the caller has just stored it with its bank id, which never changes.
    """
    while True:
        try:
            return _apply(bank_transaction or BankTransaction.objects.get(pk=bank_transaction_id), now)
        except PaymentChanged:
            bank_transaction = None


def apply_report(bank_transaction: BankTransaction, *, now: datetime) -> None:
    """Apply the bank transaction of a report.

    The sweep repeats a failed attempt if the bank transaction is not matched yet. Otherwise the error is
    raised, so that the bank gets an error and sends its notification again.
    """
    if bank_transaction.match_result == MatchResult.PENDING:
        try_apply(bank_transaction_id=bank_transaction.id, now=now, bank_transaction=bank_transaction)
    else:
        apply(bank_transaction_id=bank_transaction.id, now=now)


def apply_unapplied(*, now: datetime, batch: int = 500) -> int:
    """Apply bank transactions that a crash left unmatched. Returns how many."""
    unapplied = (
        BankTransaction.objects.not_matched()
        .filter(received_at__lte=now - UNAPPLIED_AFTER)
        .order_by("received_at")
    )
    found = list(unapplied.values_list("pk", flat=True)[:batch])
    return sum(try_apply(bank_transaction_id=bank_transaction_id, now=now) for bank_transaction_id in found)


def try_apply(
    *, bank_transaction_id: str, now: datetime, bank_transaction: BankTransaction | None = None
) -> bool:
    """`apply` a stored bank transaction. An error is logged, and the sweep tries again."""
    try:
        apply(bank_transaction_id=bank_transaction_id, now=now, bank_transaction=bank_transaction)
    except Exception:
        log.exception("bank transaction %s could not be applied", bank_transaction_id)
        return False
    return True


def apply_together(bank_transactions: Sequence[BankTransaction], *, now: datetime) -> set[str]:
    """Apply credits of one bank with a fixed number of statements. The caller opens the transaction.

    Returns the ids of those that need `apply`: late, reversed, or probably reported before.
    """
    matches = [
        match
        for match in _lock(bank_transactions)
        if match.bank_transaction.match_result == MatchResult.PENDING
    ]
    pairs = [(match.bank_transaction, match.payment) for match in matches if match.payment]
    credits_per_payment = Counter(payment.id for _, payment in pairs)
    expiry_sweep.store(list({payment.id: payment for _, payment in pairs}.values()), now)
    returned = probable_duplicates.payments_with_returned_money(list(credits_per_payment))
    reversed_ids = reversals.reversed_ids([bank_transaction for bank_transaction, _ in pairs])
    simple = []
    for match in matches:
        bank_transaction, payment_id = match.bank_transaction, match.payment.id if match.payment else ""
        match.result = match_rules.result_for(bank_transaction, match.payment)
        if (
            match.result != MatchResult.LATE
            and not bank_transaction.later_bank_reference
            and bank_transaction.bank_reference not in reversed_ids
            and payment_id not in returned
            and credits_per_payment[payment_id] <= 1
        ):
            simple.append(match)
    _act_on(simple, now)
    return {match.bank_transaction.id for match in matches} - {match.bank_transaction.id for match in simple}


@transaction.atomic
def _apply(bank_transaction: BankTransaction, now: datetime) -> BankTransaction:
    if bank_transaction.kind == BankTransactionKind.REVERSAL:
        deduplication.lock_names([_pairing_lock(bank_transaction)])
        return _reverse(bank_transaction.id, now)
    (match,) = _lock([bank_transaction])
    bank_transaction, payment = match.bank_transaction, match.payment
    is_new = bank_transaction.match_result == MatchResult.PENDING
    if not is_new and bank_transaction.payment != payment:
        raise PaymentChanged()
    is_credit = bank_transaction.kind == BankTransactionKind.CREDIT
    reversal = reversals.find_due(bank_transaction, is_new=is_new) if is_credit else None
    updated_payment = payment if bank_transaction.is_credited and not is_new else None
    if updated_payment is not None:
        refunds.lock_waiting(updated_payment)  # before any account is locked
    confirmation.confirm_if_bank_reported(bank_transaction, now=now)
    if is_new:
        expiry_sweep.store([payment] if payment else [], now)
        match.result = match_rules.decide(bank_transaction, payment)
        is_declined = match.result == MatchResult.DECLINED
        if is_declined and payment and match_rules.is_before_creation(bank_transaction, payment):
            match.payment = None  # the bank declined something else
        _act_on([match], now)
    reversals.apply_if_due(reversal, bank_transaction, payment, now=now)
    if updated_payment is not None:
        # A later report may have more details of the payer, and refunds may wait for them. Last, so that no
        # return is ordered for money that the bank has reversed.
        payments.add_payer_details(updated_payment, bank_transaction.payer)
        refunds.send_waiting(updated_payment, now=now)
    return bank_transaction


def _lock(bank_transactions: Sequence[BankTransaction]) -> list[Match]:
    """Lock the payments of bank transactions of one bank, then the bank transactions, each by id.

    Take the pairing locks before them. Otherwise a credit and its reversal could miss each other, because
    concurrent transactions do not see each other's rows before the commit.
    """
    deduplication.lock_names([_pairing_lock(bank_transaction) for bank_transaction in bank_transactions])
    payment_ids = _find_payment_ids(bank_transactions)
    locked = {payment.id: payment for payment in _lock_rows(Payment, payment_ids.values())}
    return [
        Match(bank_transaction, locked.get(payment_ids.get(bank_transaction.id, "")))
        for bank_transaction in _lock_rows(
            BankTransaction, [bank_transaction.id for bank_transaction in bank_transactions]
        )
    ]


def _lock_rows(model: type[M], ids: Collection[str]) -> list[M]:
    return rows.find(model, "WHERE t.id = ANY(%s) ORDER BY t.id FOR NO KEY UPDATE", list(ids)) if ids else []


def _pairing_lock(bank_transaction: BankTransaction) -> str:
    return f"pairing {bank_transaction.bank} {bank_transaction.current_bank_reference}"


def _find_payment_ids(bank_transactions: Sequence[BankTransaction]) -> dict[str, str]:
    """Return the payments of bank transactions: the matched one, or the one that the reference names.

    Bank, biller id and reference must be those of a QR code that we made.
    """
    found = {
        bank_transaction.id: bank_transaction.payment_id
        for bank_transaction in bank_transactions
        if bank_transaction.payment_id
    }
    new = [
        bank_transaction
        for bank_transaction in bank_transactions
        if bank_transaction.match_result == MatchResult.PENDING
    ]
    if new:
        wanted = [[bank_transaction.reference1 for bank_transaction in new], new[0].bank]
        codes = {tuple(key): payment_id for payment_id, *key in rows.run(FIND_PAYMENTS, wanted).fetchall()}
        keys = {
            bank_transaction.id: (bank_transaction.biller_id, bank_transaction.reference1)
            for bank_transaction in new
        }
        found |= {
            bank_transaction_id: codes[key] for bank_transaction_id, key in keys.items() if key in codes
        }
    return found


def _act_on(matches: Sequence[Match], now: datetime) -> None:
    """Store the match results of one bank's transactions and move their money."""
    if not matches:
        return
    for match in matches:
        bank_transaction, payment = match.bank_transaction, match.payment
        bank_transaction.match_result, bank_transaction.matched_at, bank_transaction.payment = (
            match.result,
            now,
            payment,
        )
        bank_transaction.merchant_id = payment.merchant_id if payment else None
    names = ["match_result", "matched_at", "payment", "merchant"]
    rows.update_rows([match.bank_transaction for match in matches], names)
    source = accounts.bank(matches[0].bank_transaction.bank)
    held = [match for match in matches if match.result in HELD_RESULTS]
    waiting = _hold_in_suspense(held, source, now) if held else []
    pairs = [(match.bank_transaction, match.payment) for match in matches if match.payment]
    if paid := [pair for pair in pairs if pair[0].match_result == MatchResult.APPLIED]:
        crediting.credit(paid, source=source, now=now)
    for bank_transaction, payment in pairs:
        if bank_transaction.match_result == MatchResult.DECLINED and payment.status == PaymentStatus.PENDING:
            payments.fail(payment, failure_code=DECLINED_BY_BANK, now=now)
    if exception_ids := [match.bank_transaction.id for match in waiting if match.payment]:
        exceptions.publish(exception_ids, now=now)


def _hold_in_suspense(held: Sequence[Match], source: str, now: datetime) -> list[Match]:
    """Hold the money. Returns what waits for a decision: not late money that its merchant accepts."""
    new = [
        PaymentException(
            id=match.bank_transaction.id,
            payment=match.payment,
            reason=match.result,
            amount=match.bank_transaction.amount,
            reported_at=match.bank_transaction.received_at,
        )
        for match in held
        if match.payment
    ]
    exceptions.report(new)
    ledger.hold(
        {match.bank_transaction.id: match.bank_transaction.amount for match in held}, source=source, now=now
    )
    waiting = [match for match in held if not _accept_late_money(match, now)]
    listing.show([match.bank_transaction.listed() for match in waiting])
    if waiting:
        found = ", ".join(f"{match.bank_transaction.id} ({match.result})" for match in waiting)
        log.warning("bank transactions from %s wait for staff: %s", source, found)
    return waiting


def _accept_late_money(match: Match, now: datetime) -> bool:
    """Credit late money if the merchant accepts it and no other report is probably the same money."""
    payment = match.payment
    if match.result != MatchResult.LATE or payment is None:
        return False
    if payment.merchant.late_money != LateMoneyPolicy.ACCEPT or probable_duplicates.find(
        [match.bank_transaction]
    ):
        return False
    crediting.accept_by_policy(match.bank_transaction, payment, now=now)
    return True


def _reverse(bank_transaction_id: str, now: datetime) -> BankTransaction:
    """Lock the payment, the credit and the reversal, in this order, and apply the reversal."""
    credit = reversals.find_credit(BankTransaction.objects.get(pk=bank_transaction_id))
    payment = None
    if credit is not None:
        payment = Payment.objects.locked(credit.payment_id) if credit.payment_id else None
        seen, credit = credit.payment_id, BankTransaction.objects.locked(credit.id)
        if credit.payment_id != seen:
            raise PaymentChanged()
    reversal = BankTransaction.objects.locked(bank_transaction_id)
    if reversals.is_not_applied(reversal):
        reversals.apply(reversal, credit, payment, now=now)
    if credit is not None and reversal.match_result == MatchResult.ORDERED:
        order_completion.complete(reversals.own_reversal_orders(credit), now=now)
    return reversal
