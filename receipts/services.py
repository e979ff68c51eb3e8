"""Apply receipts: the bank's word becomes a payment's fate, once."""

import logging
from datetime import datetime, timedelta

from django.db import transaction

from merchants.models import LateMoney
from payments import services as payments
from payments.models import Payment, Status
from qrcodes.models import QrCode
from receipts import (
    confirmation_inquiries,
    confirming,
    crediting,
    joining,
    orders,
    probable_duplicates,
    reversals,
)
from receipts.judging import is_late, judge
from receipts.models import HELD, Kind, Outcome, Receipt
from refunds import services as refunds
from transactions import accounts, ledger

log = logging.getLogger("receipts")
DECLINED = "declined_by_bank"
# The request that stored a receipt applies it at once; what is older was left by a crash.
LEFT_OVER = timedelta(seconds=2)


class Moved(Exception):
    """Somebody gave the money another payment in the meantime: begin again."""


def apply(*, receipt_id: str, now: datetime) -> Receipt:
    """Judge a receipt and act on it in one commit. What was judged before stays as it is.

    But a credit that got a name since then may be the one that a reversal has waited for, and its payment
    lacks what a later message told of the payer.
    """
    while True:
        try:
            return _apply(receipt_id, now)
        except Moved:
            continue


def hear(receipt: Receipt, *, now: datetime) -> None:
    """Act on what a message was stored as, in the next commit.

    What fails is left to the sweep if it would find it. Else it is raised: the message is not answered as
    received, so the bank tells it again.
    """
    if receipt.outcome == Outcome.WAITING:
        try_to_apply(receipt_id=receipt.id, now=now)
    else:
        apply(receipt_id=receipt.id, now=now)


def apply_left(*, now: datetime, batch: int = 500) -> int:
    """Apply what a crash stored but did not apply. Returns how many."""
    left = Receipt.objects.not_judged().filter(received_at__lte=now - LEFT_OVER).order_by("received_at")
    found = list(left.values_list("pk", flat=True)[:batch])
    return sum(try_to_apply(receipt_id=receipt_id, now=now) for receipt_id in found)


def try_to_apply(*, receipt_id: str, now: datetime) -> bool:
    """Apply a receipt that is safely stored; what goes wrong is logged and left to the next sweep."""
    try:
        apply(receipt_id=receipt_id, now=now)
    except Exception:
        log.exception("receipt %s could not be applied", receipt_id)
        return False
    return True


def turn_of(receipt: Receipt) -> str:
    """The lock that a credit and its reversal take, one after the other (see `joining.hold`)."""
    return f"turn {receipt.bank} {receipt.transaction_id}"


@transaction.atomic
def _apply(receipt_id: str, now: datetime) -> Receipt:
    """Lock order: payment, then receipt; a copy at the same time waits and finds the work done."""
    receipt = Receipt.objects.get(pk=receipt_id)
    # A credit and its reversal take turns: else each could miss the other, which is not committed yet.
    joining.hold([turn_of(receipt)])
    if receipt.kind == Kind.REVERSAL:
        return _reverse(receipt_id, now)
    payment = _payment_of(receipt)
    receipt = Receipt.objects.locked(receipt_id)
    is_news = receipt.outcome == Outcome.WAITING
    if not is_news and receipt.payment != payment:
        raise Moved()
    reversal = reversals.due_with(receipt, is_news=is_news) if receipt.kind == Kind.CREDIT else None
    learns = payment if receipt.is_credited and not is_news else None
    if learns is not None:
        refunds.prepare_to_address(learns)  # before any account is locked
    confirming.by_bank(receipt, now=now)
    if is_news:
        _judge(receipt, payment, now)
    reversals.catch_up(reversal, receipt, payment, now=now)
    if learns is not None:
        # Last: what the bank took back itself is not ordered from it as well.
        crediting.learn_payer(receipt, learns, now=now)
    return receipt


def _judge(receipt: Receipt, payment: Payment | None, now: datetime) -> None:
    if payment is not None:
        payments.materialise_expiry(payment, now)
    outcome = _outcome(receipt, payment)
    receipt.outcome, receipt.judged_at, receipt.payment = outcome, now, payment
    receipt.merchant_id = payment.merchant_id if payment is not None else None
    receipt.save(update_fields=["outcome", "judged_at", "payment", "merchant"])
    if outcome in HELD:
        _hold(receipt, payment, now)
    elif payment is not None and outcome == Outcome.APPLIED:
        crediting.apply(receipt, payment, now=now)
    elif payment is not None and payment.status == Status.PENDING:
        payments.fail(payment, failure_code=DECLINED, now=now)


def _outcome(receipt: Receipt, payment: Payment | None) -> Outcome:
    """A payment does not succeed by money that was sent back when another source reported it, as too late."""
    outcome = judge(receipt, payment)
    if outcome == Outcome.LATE and payment is not None and payment.expires_at is not None:
        # A bank that does not sign is asked first. Its notification may have come before the code expired.
        received_at = confirmation_inquiries.first_received_at(receipt)
        if not is_late(receipt.paid_at, received_at, payment.expires_at):
            outcome = Outcome.APPLIED
    was_late = outcome == Outcome.APPLIED and payment is not None and payment.status == Status.EXPIRED
    if was_late and probable_duplicates.is_returned_already(receipt):
        return Outcome.DUPLICATE
    return outcome


def _hold(receipt: Receipt, payment: Payment | None, now: datetime) -> None:
    """It waits, unless its merchant takes late money without being asked."""
    ledger.hold(subject_id=receipt.id, amount=receipt.amount, source=accounts.bank(receipt.bank), at=now)
    accepts = payment is not None and payment.merchant.late_money == LateMoney.ACCEPT
    is_due = accepts and receipt.outcome == Outcome.LATE and not probable_duplicates.of([receipt])
    if payment is not None and is_due:
        crediting.by_policy(receipt, payment, now=now)
    else:
        log.warning("receipt %s of %s waits for staff: %s", receipt.id, receipt.bank, receipt.outcome)


def _reverse(receipt_id: str, now: datetime) -> Receipt:
    """Under the locks of payment, credit and reversal, in this order."""
    credit = reversals.credit_of(Receipt.objects.get(pk=receipt_id))
    payment = None
    if credit is not None:
        payment = Payment.objects.locked(credit.payment_id) if credit.payment_id else None
        seen, credit = credit.payment_id, Receipt.objects.locked(credit.id)
        if credit.payment_id != seen:
            raise Moved()
    reversal = Receipt.objects.locked(receipt_id)
    if reversals.is_due(reversal):
        reversals.carry_out(reversal, credit, payment, now=now)
    if credit is not None and reversal.outcome == Outcome.ORDERED:
        orders.conclude(reversals.orders_of(credit), now=now)
    return reversal


def _payment_of(receipt: Receipt) -> Payment | None:
    """Under its lock: what it was judged to be for, or else what its reference names.

    The reference must be ours, and bank, biller and merchant go together.
    """
    if receipt.outcome != Outcome.WAITING:
        return Payment.objects.locked(receipt.payment_id) if receipt.payment_id else None
    qr_code = (
        QrCode.objects.select_related("merchant")
        .filter(reference1=receipt.reference1, biller_id=receipt.biller_id, merchant__bank=receipt.bank)
        .first()
    )
    return None if qr_code is None else Payment.objects.locked(qr_code.payment_id)
