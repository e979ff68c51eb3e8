"""Record payments and refunds in the history, and payments in the ledger."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from core import ids
from core.database import rows
from core.database.state_machines import IllegalTransition, transition_where
from ledger import services as ledger
from ledger.journal_types import JournalType
from transactions.errors import TransactionNotFound
from transactions.models import Transaction, TransactionStatus, TransactionType


def find(*, merchant_id: str, transaction_id: str) -> Transaction:
    """Raises TransactionNotFound."""
    mine = Transaction.objects.filter(merchant_id=merchant_id)
    return ids.find(transaction_id, "txn_", mine, TransactionNotFound)


def record_payments(credits: Sequence[ledger.Credit], *, currency: str, source: str, now: datetime) -> None:
    """Post payments that succeeded, and add them to the history.

    The subjects of `credits` are payments. Their money comes from the account `source`.
    """
    succeeded = TransactionType.PAYMENT, TransactionStatus.SUCCEEDED
    history = [
        _row(*succeeded, each.subject_id, each.merchant_id, now, amount=each.amount, currency=currency)
        for each in credits
    ]
    ledger.credit(credits, type=JournalType.PAYMENT, source=source, now=now, also=history)


def record_failure(*, payment_id: str, merchant_id: str, amount: int, currency: str, now: datetime) -> None:
    """Record an attempt that failed."""
    failed = TransactionType.FAILED, TransactionStatus.FAILED
    rows.insert_many([_row(*failed, payment_id, merchant_id, now, amount=amount, currency=currency)])


def record_refund(
    *, refund_id: str, payment_id: str, merchant_id: str, amount: int, currency: str, now: datetime
) -> Transaction:
    """Record a refund that begins, its amount as a negative one. `ledger.services` moves the money."""
    pending = TransactionType.REFUND, TransactionStatus.PENDING
    row = _row(*pending, payment_id, merchant_id, now, amount=-amount, currency=currency, refund_id=refund_id)
    row.save(force_insert=True)
    return row


def complete_refunds(*refund_ids: str, status: TransactionStatus) -> None:
    """Record the end of refunds: `succeeded`, or `failed`, also if they were canceled.

    Raises IllegalTransition if one of them ended before, or is not in the history.
    """
    refunds = Transaction.objects.filter(refund_id__in=refund_ids)
    if transition_where(refunds, TransactionStatus.PENDING, status) != len(refund_ids):
        raise IllegalTransition(f"{', '.join(refund_ids)}: not all rows become '{status}'")


def mark_refunded(*, payment_id: str) -> None:
    """Record that all of a payment was refunded. Raises IllegalTransition if it was, or was not paid."""
    payment = Transaction.objects.filter(payment_id=payment_id, type=TransactionType.PAYMENT)
    if transition_where(payment, TransactionStatus.SUCCEEDED, TransactionStatus.REFUNDED) != 1:
        raise IllegalTransition(f"{payment_id}: no row becomes '{TransactionStatus.REFUNDED}'")


def _row(
    kind: TransactionType,
    status: TransactionStatus,
    payment_id: str,
    merchant_id: str,
    now: datetime,
    **fields: Any,
) -> Transaction:
    """A transaction that is not stored yet."""
    named = {"id": ids.new("txn_", now), "payment_id": payment_id, "merchant_id": merchant_id}
    return Transaction(type=kind, status=status, created_at=now, **named, **fields)
