"""Apply bank transactions: the bank's word becomes a payment's fate, once."""

import logging
from datetime import datetime, timedelta

from django.db import transaction

from ledger import accounts
from ledger import services as ledger
from merchants.models import LateMoneyPolicy
from payments import services as payments
from payments.models import Payment, PaymentStatus
from qrcodes.models import QrCode
from reconciliation.exceptions import duplicates, order_completion
from reconciliation.inquiries import confirmation_inquiries
from reconciliation.matching import confirmation, crediting, deduplication, reversals
from reconciliation.matching.match_rules import is_late, match_result_for
from reconciliation.models import HELD_RESULTS, BankTransaction, BankTransactionKind, MatchResult
from refunds import services as refunds

log = logging.getLogger("reconciliation")
DECLINED_BY_BANK = "declined_by_bank"
# The request that stored a bank transaction applies it at once; what is older was left by a crash.
UNAPPLIED_AFTER = timedelta(seconds=2)


class PaymentChanged(Exception):
    """Somebody gave the money another payment in the meantime: begin again."""


def apply(*, movement_id: str, now: datetime) -> BankTransaction:
    """Judge a bank transaction and act on it in one commit. What was judged before stays as it is.

    But a credit that got a name since then may be the one that a reversal has waited for, and its payment
    lacks what a later message told of the payer.
    """
    while True:
        try:
            return _apply(movement_id, now)
        except PaymentChanged:
            continue


def apply_report(movement: BankTransaction, *, now: datetime) -> None:
    """Act on what a message was stored as, in the next commit.

    What fails is left to the sweep if it would find it. Else it is raised: the message is not answered as
    received, so the bank tells it again.
    """
    if movement.match_result == MatchResult.PENDING:
        try_apply(movement_id=movement.id, now=now)
    else:
        apply(movement_id=movement.id, now=now)


def apply_unapplied(*, now: datetime, batch: int = 500) -> int:
    """Apply what a crash stored but did not apply. Returns how many."""
    unapplied = (
        BankTransaction.objects.not_matched()
        .filter(received_at__lte=now - UNAPPLIED_AFTER)
        .order_by("received_at")
    )
    found = list(unapplied.values_list("pk", flat=True)[:batch])
    return sum(try_apply(movement_id=movement_id, now=now) for movement_id in found)


def try_apply(*, movement_id: str, now: datetime) -> bool:
    """Apply a bank transaction that is safely stored; what goes wrong is logged and left to the next
    sweep.
    """
    try:
        apply(movement_id=movement_id, now=now)
    except Exception:
        log.exception("bank transaction %s could not be applied", movement_id)
        return False
    return True


def pairing_lock_name(movement: BankTransaction) -> str:
    """The lock that a credit and its reversal take, one after the other (see `joining.hold`)."""
    return f"turn {movement.bank} {movement.current_bank_transaction_id}"


@transaction.atomic
def _apply(movement_id: str, now: datetime) -> BankTransaction:
    """Lock order: payment, then bank transaction; a copy at the same time waits and finds the work done."""
    movement = BankTransaction.objects.get(pk=movement_id)
    # A credit and its reversal take turns: else each could miss the other, which is not committed yet.
    deduplication.lock_names([pairing_lock_name(movement)])
    if movement.kind == BankTransactionKind.REVERSAL:
        return _reverse(movement_id, now)
    payment = _find_payment(movement)
    movement = BankTransaction.objects.locked(movement_id)
    is_new = movement.match_result == MatchResult.PENDING
    if not is_new and movement.payment != payment:
        raise PaymentChanged()
    reversal = (
        reversals.find_due(movement, is_new=is_new) if movement.kind == BankTransactionKind.CREDIT else None
    )
    updated_payment = payment if movement.is_credited and not is_new else None
    if updated_payment is not None:
        refunds.lock_waiting(updated_payment)  # before any account is locked
    confirmation.confirm_if_bank_reported(movement, now=now)
    if is_new:
        _match(movement, payment, now)
    reversals.apply_if_due(reversal, movement, payment, now=now)
    if updated_payment is not None:
        # Last: what the bank took back itself is not ordered from it as well.
        crediting.update_payer(movement, updated_payment, now=now)
    return movement


def _match(movement: BankTransaction, payment: Payment | None, now: datetime) -> None:
    if payment is not None:
        payments.store_expiry(payment, now)
    match_result = _decide_match_result(movement, payment)
    movement.match_result, movement.matched_at, movement.payment = match_result, now, payment
    movement.merchant_id = payment.merchant_id if payment is not None else None
    movement.save(update_fields=["match_result", "matched_at", "payment", "merchant"])
    if match_result in HELD_RESULTS:
        _hold_in_suspense(movement, payment, now)
    elif payment is not None and match_result == MatchResult.APPLIED:
        crediting.credit(movement, payment, now=now)
    elif payment is not None and payment.status == PaymentStatus.PENDING:
        payments.fail(payment, failure_code=DECLINED_BY_BANK, now=now)


def _decide_match_result(movement: BankTransaction, payment: Payment | None) -> MatchResult:
    """A payment does not succeed by money that was sent back when another source reported it, as too late."""
    match_result = match_result_for(movement, payment)
    if match_result == MatchResult.LATE and payment is not None and payment.expires_at is not None:
        # A bank that does not sign is asked first. Its notification may have come before the code expired.
        received_at = confirmation_inquiries.first_received_at(movement)
        if not is_late(movement.paid_at, received_at, payment.expires_at):
            match_result = MatchResult.APPLIED
    was_late = (
        match_result == MatchResult.APPLIED
        and payment is not None
        and payment.status == PaymentStatus.EXPIRED
    )
    if was_late and duplicates.is_returned_already(movement):
        return MatchResult.DUPLICATE
    return match_result


def _hold_in_suspense(movement: BankTransaction, payment: Payment | None, now: datetime) -> None:
    """It waits, unless its merchant takes late money without being asked."""
    ledger.hold(subject_id=movement.id, amount=movement.amount, source=accounts.bank(movement.bank), now=now)
    accepts = payment is not None and payment.merchant.late_money == LateMoneyPolicy.ACCEPT
    is_due = (
        accepts and movement.match_result == MatchResult.LATE and not duplicates.find_probable([movement])
    )
    if payment is not None and is_due:
        crediting.accept_by_policy(movement, payment, now=now)
    else:
        log.warning(
            "bank transaction %s of %s waits for staff: %s", movement.id, movement.bank, movement.match_result
        )


def _reverse(movement_id: str, now: datetime) -> BankTransaction:
    """Under the locks of payment, credit and reversal, in this order."""
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


def _find_payment(movement: BankTransaction) -> Payment | None:
    """Under its lock: what it was judged to be for, or else what its reference names.

    The reference must be ours, and bank, biller and merchant go together.
    """
    if movement.match_result != MatchResult.PENDING:
        return Payment.objects.locked(movement.payment_id) if movement.payment_id else None
    qr_code = (
        QrCode.objects.select_related("merchant")
        .filter(reference1=movement.reference1, biller_id=movement.biller_id, merchant__bank=movement.bank)
        .first()
    )
    return None if qr_code is None else Payment.objects.locked(qr_code.payment_id)
