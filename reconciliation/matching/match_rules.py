"""Which result a bank transaction gets: applied, declined, or why it waits for staff."""

from datetime import datetime, time, timedelta

from django.conf import settings

from core.clock import BANGKOK
from payments.models import CLOCK_SKEW, Payment, PaymentStatus
from reconciliation.matching import probable_duplicates
from reconciliation.models import (
    BankTransaction,
    BankTransactionKind,
    ConfirmationInquiry,
    MatchResult,
    ReportSource,
)


def result_for(bank_transaction: BankTransaction, payment: Payment | None) -> MatchResult:
    """Return the result for a credit or decline and its payment, whose expiry is stored already.

    The first rule that fits decides. Reversals have their own rules: see `reconciliation.matching.reversals`.
    """
    if bank_transaction.kind == BankTransactionKind.DECLINE:
        return MatchResult.DECLINED
    if payment is None:
        return MatchResult.UNMATCHED
    if payment.status not in (PaymentStatus.PENDING, PaymentStatus.EXPIRED):
        return MatchResult.DUPLICATE
    if is_before_creation(bank_transaction, payment):
        return MatchResult.TIME_MISMATCH
    if bank_transaction.amount != payment.amount:
        return MatchResult.AMOUNT_MISMATCH
    expires_at = payment.expires_at
    was_late = expires_at is not None and is_late(
        bank_transaction.paid_at, bank_transaction.received_at, expires_at
    )
    return MatchResult.LATE if was_late else MatchResult.APPLIED


def is_before_creation(bank_transaction: BankTransaction, payment: Payment) -> bool:
    """Whether the bank says that this was before the payment existed: one of the two is wrong.

    Midnight in a statement stands for a time that the bank left out, so the whole day counts.
    """
    paid_at = bank_transaction.paid_at
    has_no_time = paid_at.astimezone(BANGKOK).time() == time()
    if bank_transaction.source == ReportSource.STATEMENT and has_no_time:
        paid_at += timedelta(days=1)
    return not payment.can_be_paid_at(paid_at)


def is_late(paid_at: datetime, received_at: datetime, expires_at: datetime) -> bool:
    """Whether the money came after the code expired, by the bank's clock and by ours.

    A report that reached us before the expiry was paid in time, even if the bank's clock is ahead. But if the
    bank's time is more than `CLOCK_SKEW` after our reception, only the bank's time counts.
    """
    deadline = expires_at + timedelta(seconds=settings.LATE_TOLERANCE_SECONDS)
    if paid_at <= deadline:
        return False
    return received_at > deadline or paid_at - received_at > CLOCK_SKEW


def decide(bank_transaction: BankTransaction, payment: Payment | None) -> MatchResult:
    """Return the result of `result_for`, with what other rows tell about late money.

    A payment is not late if its first report came in time. Money that was already returned, as late money,
    does not pay again.
    """
    match_result = result_for(bank_transaction, payment)
    if payment is None or payment.expires_at is None:
        return match_result
    if match_result == MatchResult.LATE:
        # An unsigned notification can have come before the code expired, and its confirmation after that.
        received_at = _first_received_at(bank_transaction)
        if not is_late(bank_transaction.paid_at, received_at, payment.expires_at):
            match_result = MatchResult.APPLIED
    was_late = match_result == MatchResult.APPLIED and payment.status == PaymentStatus.EXPIRED
    is_double = was_late and probable_duplicates.is_returned_already(bank_transaction)
    return MatchResult.DUPLICATE if is_double else match_result


def _first_received_at(bank_transaction: BankTransaction) -> datetime:
    """Return when the first report of this bank transaction came, which may be an unsigned notification."""
    unsigned = ConfirmationInquiry.objects.filter(
        bank=bank_transaction.bank,
        bank_reference__in=bank_transaction.bank_references,
        biller_id=bank_transaction.biller_id,
        reference1=bank_transaction.reference1,
        amount=bank_transaction.amount,
        notification__isnull=False,
    )
    received = unsigned.order_by("created_at").values_list("created_at", flat=True).first()
    return bank_transaction.received_at if received is None else min(received, bank_transaction.received_at)
