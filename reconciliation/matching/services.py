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

    movement: BankTransaction
    payment: Payment | None
    result: MatchResult = MatchResult.PENDING


def apply(*, movement_id: str, now: datetime, movement: BankTransaction | None = None) -> BankTransaction:
    """Match a bank transaction and act on the result in one commit.

    The result of an earlier call does not change. But a reversal may have waited until the credit got its
    bank id, and a later report may have more details of the payer.

    movement: given if the caller has just stored it with its bank id, which never changes.
    """
    while True:
        try:
            return _apply(movement or BankTransaction.objects.get(pk=movement_id), now)
        except PaymentChanged:
            movement = None


def apply_report(movement: BankTransaction, *, now: datetime) -> None:
    """Apply the bank transaction of a report.

    The sweep repeats a failed attempt if the bank transaction is not matched yet. Otherwise the error is
    raised, so that the bank gets an error and sends its notification again.
    """
    if movement.match_result == MatchResult.PENDING:
        try_apply(movement_id=movement.id, now=now, movement=movement)
    else:
        apply(movement_id=movement.id, now=now)


def apply_unapplied(*, now: datetime, batch: int = 500) -> int:
    """Apply bank transactions that a crash left unmatched. Returns how many."""
    unapplied = (
        BankTransaction.objects.not_matched()
        .filter(received_at__lte=now - UNAPPLIED_AFTER)
        .order_by("received_at")
    )
    found = list(unapplied.values_list("pk", flat=True)[:batch])
    return sum(try_apply(movement_id=movement_id, now=now) for movement_id in found)


def try_apply(*, movement_id: str, now: datetime, movement: BankTransaction | None = None) -> bool:
    """`apply` a stored bank transaction. An error is logged, and the sweep tries again."""
    try:
        apply(movement_id=movement_id, now=now, movement=movement)
    except Exception:
        log.exception("bank transaction %s could not be applied", movement_id)
        return False
    return True


def apply_together(movements: Sequence[BankTransaction], *, now: datetime) -> set[str]:
    """Apply credits of one bank with a fixed number of statements. The caller opens the transaction.

    Returns the ids of those that need `apply`: late, reversed, or probably reported before.
    """
    matches = [match for match in _lock(movements) if match.movement.match_result == MatchResult.PENDING]
    pairs = [(match.movement, match.payment) for match in matches if match.payment]
    credits_per_payment = Counter(payment.id for _, payment in pairs)
    expiry_sweep.store(list({payment.id: payment for _, payment in pairs}.values()), now)
    returned = probable_duplicates.payments_with_returned_money(list(credits_per_payment))
    reversed_ids = reversals.reversed_ids([movement for movement, _ in pairs])
    simple = []
    for match in matches:
        movement, payment_id = match.movement, match.payment.id if match.payment else ""
        match.result = match_rules.result_for(movement, match.payment)
        if (
            match.result != MatchResult.LATE
            and not movement.later_bank_transaction_id
            and movement.bank_transaction_id not in reversed_ids
            and payment_id not in returned
            and credits_per_payment[payment_id] <= 1
        ):
            simple.append(match)
    _act_on(simple, now)
    return {match.movement.id for match in matches} - {match.movement.id for match in simple}


@transaction.atomic
def _apply(movement: BankTransaction, now: datetime) -> BankTransaction:
    if movement.kind == BankTransactionKind.REVERSAL:
        deduplication.lock_names([_pairing_lock(movement)])
        return _reverse(movement.id, now)
    (match,) = _lock([movement])
    movement, payment = match.movement, match.payment
    is_new = movement.match_result == MatchResult.PENDING
    if not is_new and movement.payment != payment:
        raise PaymentChanged()
    is_credit = movement.kind == BankTransactionKind.CREDIT
    reversal = reversals.find_due(movement, is_new=is_new) if is_credit else None
    updated_payment = payment if movement.is_credited and not is_new else None
    if updated_payment is not None:
        refunds.lock_waiting(updated_payment)  # before any account is locked
    confirmation.confirm_if_bank_reported(movement, now=now)
    if is_new:
        expiry_sweep.store([payment] if payment else [], now)
        match.result = match_rules.decide(movement, payment)
        is_declined = match.result == MatchResult.DECLINED
        if is_declined and payment and match_rules.is_before_creation(movement, payment):
            match.payment = None  # the bank declined something else
        _act_on([match], now)
    reversals.apply_if_due(reversal, movement, payment, now=now)
    if updated_payment is not None:
        # A later report may have more details of the payer, and refunds may wait for them. Last, so that no
        # return is ordered for money that the bank has reversed.
        payments.add_payer_details(updated_payment, movement.payer)
        refunds.send_waiting(updated_payment, now=now)
    return movement


def _lock(movements: Sequence[BankTransaction]) -> list[Match]:
    """Lock the payments of bank transactions of one bank, then the bank transactions, each by id.

    Take the pairing locks before them. Otherwise a credit and its reversal could miss each other, because
    concurrent transactions do not see each other's rows before the commit.
    """
    deduplication.lock_names([_pairing_lock(movement) for movement in movements])
    payment_ids = _find_payment_ids(movements)
    locked = {payment.id: payment for payment in _lock_rows(Payment, payment_ids.values())}
    return [
        Match(movement, locked.get(payment_ids.get(movement.id, "")))
        for movement in _lock_rows(BankTransaction, [movement.id for movement in movements])
    ]


def _lock_rows(model: type[M], ids: Collection[str]) -> list[M]:
    return rows.find(model, "WHERE t.id = ANY(%s) ORDER BY t.id FOR NO KEY UPDATE", list(ids)) if ids else []


def _pairing_lock(movement: BankTransaction) -> str:
    return f"pairing {movement.bank} {movement.current_bank_transaction_id}"


def _find_payment_ids(movements: Sequence[BankTransaction]) -> dict[str, str]:
    """Return the payments of bank transactions: the matched one, or the one that the reference names.

    Bank, biller id and reference must be those of a QR code that we made.
    """
    found = {movement.id: movement.payment_id for movement in movements if movement.payment_id}
    new = [movement for movement in movements if movement.match_result == MatchResult.PENDING]
    if new:
        wanted = [[movement.reference1 for movement in new], new[0].bank]
        codes = {tuple(key): payment_id for payment_id, *key in rows.run(FIND_PAYMENTS, wanted).fetchall()}
        keys = {movement.id: (movement.biller_id, movement.reference1) for movement in new}
        found |= {movement_id: codes[key] for movement_id, key in keys.items() if key in codes}
    return found


def _act_on(matches: Sequence[Match], now: datetime) -> None:
    """Store the match results of one bank's transactions and move their money."""
    if not matches:
        return
    for match in matches:
        movement, payment = match.movement, match.payment
        movement.match_result, movement.matched_at, movement.payment = match.result, now, payment
        movement.merchant_id = payment.merchant_id if payment else None
    names = ["match_result", "matched_at", "payment", "merchant"]
    rows.update_rows([match.movement for match in matches], names)
    source = accounts.bank(matches[0].movement.bank)
    held = [match for match in matches if match.result in HELD_RESULTS]
    waiting = _hold_in_suspense(held, source, now) if held else []
    pairs = [(match.movement, match.payment) for match in matches if match.payment]
    if paid := [pair for pair in pairs if pair[0].match_result == MatchResult.APPLIED]:
        crediting.credit(paid, source=source, now=now)
    for movement, payment in pairs:
        if movement.match_result == MatchResult.DECLINED and payment.status == PaymentStatus.PENDING:
            payments.fail(payment, failure_code=DECLINED_BY_BANK, now=now)
    if exception_ids := [match.movement.id for match in waiting if match.payment]:
        exceptions.publish(exception_ids, now=now)


def _hold_in_suspense(held: Sequence[Match], source: str, now: datetime) -> list[Match]:
    """Hold the money. Returns what waits for a decision: not late money that its merchant accepts."""
    new = [
        PaymentException(
            id=match.movement.id,
            payment=match.payment,
            reason=match.result,
            amount=match.movement.amount,
            reported_at=match.movement.received_at,
        )
        for match in held
        if match.payment
    ]
    exceptions.report(new)
    ledger.hold({match.movement.id: match.movement.amount for match in held}, source=source, now=now)
    waiting = [match for match in held if not _accept_late_money(match, now)]
    listing.show([match.movement.listed() for match in waiting])
    if waiting:
        found = ", ".join(f"{match.movement.id} ({match.result})" for match in waiting)
        log.warning("bank transactions from %s wait for staff: %s", source, found)
    return waiting


def _accept_late_money(match: Match, now: datetime) -> bool:
    """Credit late money if the merchant accepts it and no other report is probably the same money."""
    payment = match.payment
    if match.result != MatchResult.LATE or payment is None:
        return False
    if payment.merchant.late_money != LateMoneyPolicy.ACCEPT or probable_duplicates.find([match.movement]):
        return False
    crediting.accept_by_policy(match.movement, payment, now=now)
    return True


def _reverse(movement_id: str, now: datetime) -> BankTransaction:
    """Lock the payment, the credit and the reversal, in this order, and apply the reversal."""
    credit = reversals.find_credit(BankTransaction.objects.get(pk=movement_id))
    payment = None
    if credit is not None:
        payment = Payment.objects.locked(credit.payment_id) if credit.payment_id else None
        seen, credit = credit.payment_id, BankTransaction.objects.locked(credit.id)
        if credit.payment_id != seen:
            raise PaymentChanged()
    reversal = BankTransaction.objects.locked(movement_id)
    if reversals.is_not_applied(reversal):
        reversals.apply(reversal, credit, payment, now=now)
    if credit is not None and reversal.match_result == MatchResult.ORDERED:
        order_completion.complete(reversals.own_reversal_orders(credit), now=now)
    return reversal
