"""Rules that decide the match result of a bank transaction. The first rule that fits decides."""

from datetime import datetime, timedelta

from django.conf import settings

from payments.models import Payment, PaymentStatus
from reconciliation.models import BankTransaction, BankTransactionKind, MatchResult

CLOCK_SKEW = timedelta(seconds=90)
"""Servers of banks keep time to seconds."""


def match_result_for(movement: BankTransaction, payment: Payment | None) -> MatchResult:
    """Return the result for a credit or decline and the payment that its reference names.

    The payment's expiry is materialised already. For reversals see `reconciliation.matching.reversals`.
    """
    if movement.kind == BankTransactionKind.DECLINE:
        return MatchResult.DECLINED
    if payment is None:
        return MatchResult.UNMATCHED
    if payment.status not in (PaymentStatus.PENDING, PaymentStatus.EXPIRED):
        return MatchResult.DUPLICATE
    if movement.amount != payment.amount:
        return MatchResult.AMOUNT_MISMATCH
    if payment.expires_at is not None and is_late(movement.paid_at, movement.received_at, payment.expires_at):
        return MatchResult.LATE
    return MatchResult.APPLIED


def is_late(paid_at: datetime, received_at: datetime, expires_at: datetime) -> bool:
    """Whether the money came after the code expired, by the bank's clock and by ours.

    What reached us in time was paid in time, also if the bank's clock is ahead. But a time of more than
    `CLOCK_SKEW` after our reception is no clock that is ahead: then the bank's time alone decides.
    """
    deadline = expires_at + timedelta(seconds=settings.LATE_TOLERANCE_SECONDS)
    if paid_at <= deadline:
        return False
    return received_at > deadline or paid_at - received_at > CLOCK_SKEW
