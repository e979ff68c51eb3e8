"""What becomes of a receipt: read the table from top to bottom, the first case that fits decides."""

from datetime import datetime, timedelta

from django.conf import settings

from payments.models import Payment, Status
from receipts.models import Kind, Outcome, Receipt

CLOCK_SKEW = timedelta(seconds=90)
"""Servers of banks keep time to seconds."""


def judge(receipt: Receipt, payment: Payment | None) -> Outcome:
    """The outcome for money, or for a decline, and the payment that its reference names.

    The payment's expiry is materialised already. For reversals see `receipts.reversals`.
    """
    if receipt.kind == Kind.DECLINE:
        return Outcome.DECLINED
    if payment is None:
        return Outcome.UNMATCHED
    if payment.status not in (Status.PENDING, Status.EXPIRED):
        return Outcome.DUPLICATE
    if receipt.amount != payment.amount:
        return Outcome.AMOUNT_MISMATCH
    if payment.expires_at is not None and is_late(receipt.paid_at, receipt.received_at, payment.expires_at):
        return Outcome.LATE
    return Outcome.APPLIED


def is_late(paid_at: datetime, received_at: datetime, expires_at: datetime) -> bool:
    """Whether the money came after the code expired, by the bank's clock and by ours.

    What reached us in time was paid in time, also if the bank's clock is ahead. But a time of more than
    `CLOCK_SKEW` after our reception is no clock that is ahead: then the bank's time alone decides.
    """
    end = expires_at + timedelta(seconds=settings.LATE_TOLERANCE_SECONDS)
    if paid_at <= end:
        return False
    return received_at > end or paid_at - received_at > CLOCK_SKEW
