"""Match bank transactions with payments and act on the result, once each."""

import logging
from collections.abc import Callable
from datetime import datetime, timedelta

from django.db import transaction
from django.db.models import Exists, OuterRef

from merchants.errors import has_moved
from merchants.models import Merchant
from payments.models import Payment
from reconciliation.matching import (
    credits,
    deduplication,
    order_completion,
    probable_duplicates,
    reversals,
    statement_fees,
)
from reconciliation.matching.credits import PaymentChanged
from reconciliation.models import BankTransaction, BankTransactionKind, MatchResult, ResolutionState
from transfers import services as transfers

log = logging.getLogger("reconciliation")
# The request that stores a bank transaction applies it at once. If 2 s have passed, the process has crashed.
UNAPPLIED_AFTER = timedelta(seconds=2)


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
            found = bank_transaction or BankTransaction.objects.get(pk=bank_transaction_id)
            with transaction.atomic():
                return APPLY[BankTransactionKind(found.kind)](found, now)
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
    """Apply bank transactions that a crash left unmatched, and fees of statement lines. Returns how many."""
    moved = Merchant.objects.filter(moved_at__isnull=False)  # their money is applied where they are now
    unapplied = (
        BankTransaction.objects.not_matched()
        .filter(received_at__lte=now - UNAPPLIED_AFTER)
        .exclude(Exists(moved.filter(bank=OuterRef("bank"), biller_id=OuterRef("biller_id"))))
        .exclude(Exists(moved.filter(standby_bank=OuterRef("bank"), standby_biller_id=OuterRef("biller_id"))))
        .order_by("received_at")
    )
    found = list(unapplied.values_list("pk", flat=True)[:batch])
    count = sum(try_apply(bank_transaction_id=bank_transaction_id, now=now) for bank_transaction_id in found)
    statement_fees.apply_due(now=now, batch=batch)
    return count


def try_apply(
    *, bank_transaction_id: str, now: datetime, bank_transaction: BankTransaction | None = None
) -> bool:
    """`apply` a stored bank transaction. An error is logged, and the sweep tries again."""
    try:
        apply(bank_transaction_id=bank_transaction_id, now=now, bank_transaction=bank_transaction)
    except Exception as error:
        if not has_moved(error):
            log.exception("bank transaction %s could not be applied", bank_transaction_id)
        return False
    return True


def _apply_reversal(bank_transaction: BankTransaction, now: datetime) -> BankTransaction:
    """Lock the payment, the credit and the reversal, in this order, and apply the reversal."""
    deduplication.lock_names([deduplication.pair_name(bank_transaction)])
    credit, payment = deduplication.counterpart(BankTransaction.objects.get(pk=bank_transaction.id)), None
    if credit is not None:
        credit = probable_duplicates.merged_into(credit)
        payment = Payment.objects.locked(credit.payment_id) if credit.payment_id else None
        seen, credit = credit.payment_id, BankTransaction.objects.locked(credit.id)
        if credit.payment_id != seen:
            raise PaymentChanged()
    reversal = BankTransaction.objects.locked(bank_transaction.id)
    is_dismissed = reversal.resolution_state == ResolutionState.DISMISSED
    if reversal.match_result in reversals.NOT_APPLIED and not is_dismissed:
        reversals.apply(reversal, credit, payment, now=now)
    if credit is not None and reversal.match_result == MatchResult.ORDERED:
        for order_id in reversals.own_reversal_orders(credit):
            transfers.complete_by_reversal(order_id, order_completion.handler_of(order_id), now=now)
    return reversal


Apply = Callable[[BankTransaction, datetime], BankTransaction]
APPLY: dict[BankTransactionKind, Apply] = {
    BankTransactionKind.CREDIT: credits.apply,
    BankTransactionKind.DECLINE: credits.apply,
    BankTransactionKind.REVERSAL: _apply_reversal,
}
