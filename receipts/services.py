"""Apply receipts: the bank's word becomes a payment's fate, once."""

import logging
from datetime import datetime, timedelta

from django.db import transaction

from payments import services as payments
from payments.models import Payment, Status
from payments.services import Payer
from qrcodes.models import QrCode
from receipts.judging import judge
from receipts.models import Outcome, Receipt
from transactions import accounts

log = logging.getLogger("receipts")
DECLINED = "declined_by_bank"
# The request that stored a receipt applies it at once; what is older was left by a crash.
LEFT_OVER = timedelta(seconds=2)


@transaction.atomic
def apply(*, receipt_id: str, now: datetime) -> Receipt:
    """Judge a receipt and act on it in one commit. A receipt that was judged before stays as it is.

    Lock order: payment, then receipt; a copy at the same time waits and finds the work done.
    """
    payment = _payment_of(Receipt.objects.get(pk=receipt_id))
    receipt: Receipt = Receipt.objects.select_for_update(no_key=True).get(pk=receipt_id)
    if receipt.outcome != Outcome.WAITING:
        return receipt
    if payment is not None:
        payments.materialise_expiry(payment, now)
    outcome = judge(receipt, payment)
    _act(outcome, receipt, payment, now)
    _note(receipt, outcome, payment, now)
    return receipt


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


def _payment_of(receipt: Receipt) -> Payment | None:
    """The payment under its lock, if the reference is ours and the bank, biller and merchant go together."""
    qr_code = (
        QrCode.objects.select_related("merchant")
        .filter(reference1=receipt.reference1, biller_id=receipt.biller_id, merchant__bank=receipt.bank)
        .first()
    )
    return None if qr_code is None else Payment.objects.locked(qr_code.payment_id)


def _act(outcome: Outcome, receipt: Receipt, payment: Payment | None, now: datetime) -> None:
    if payment is None:
        return
    if outcome == Outcome.APPLIED:
        payer = Payer(receipt.payer_name, receipt.payer_bank_code, receipt.payer_account)
        source = accounts.bank(receipt.bank)
        payments.succeed(payment, paid_at=receipt.paid_at, payer=payer, source=source, now=now)
    elif outcome == Outcome.DECLINED and payment.status == Status.PENDING:
        payments.fail(payment, failure_code=DECLINED, now=now)


def _note(receipt: Receipt, outcome: Outcome, payment: Payment | None, now: datetime) -> None:
    receipt.outcome, receipt.judged_at, receipt.payment = outcome, now, payment
    receipt.merchant_id = payment.merchant_id if payment is not None else None
    receipt.save(update_fields=["outcome", "judged_at", "payment", "merchant"])
    if outcome not in (Outcome.APPLIED, Outcome.DECLINED):
        log.warning("receipt %s of %s waits for staff: %s", receipt.id, receipt.bank, outcome)
