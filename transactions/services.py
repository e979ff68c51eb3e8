"""Write the history, and with it the ledger. Journals are told; they never ask."""

from datetime import datetime

from django.db.models import QuerySet

from core import ids
from transactions import ledger
from transactions.models import Fact, IllegalMove, Status, Transaction, Type


def record_payment(
    *, payment_id: str, merchant_id: str, amount: int, currency: str, source: str, at: datetime
) -> Transaction:
    """A payment that succeeded: `amount` (satang) is what was received, from the account `source`."""
    ledger.credit(
        merchant_id=merchant_id,
        fact=Fact.PAYMENT,
        subject_id=payment_id,
        amount=amount,
        source=source,
        at=at,
    )
    return _record(Type.PAYMENT, Status.SUCCEEDED, payment_id, merchant_id, amount, currency, at)


def record_failure(
    *, payment_id: str, merchant_id: str, amount: int, currency: str, at: datetime
) -> Transaction:
    """The row of an attempt that failed."""
    return _record(Type.FAILED, Status.FAILED, payment_id, merchant_id, amount, currency, at)


def record_refund(
    *, refund_id: str, payment_id: str, merchant_id: str, amount: int, currency: str, at: datetime
) -> Transaction:
    """The row of a refund that begins; `amount` (satang) is positive here and negative in the history.

    Its money moves by `transactions.ledger`, step by step.
    """
    return _record(
        Type.REFUND, Status.PENDING, payment_id, merchant_id, -amount, currency, at, refund_id=refund_id
    )


def settle_refund(*, refund_id: str, status: Status) -> None:
    """How the refund ended: `succeeded`, or `failed`, also where it was canceled.

    Raises IllegalMove where it ended before, or never began.
    """
    _move(refund_id, Transaction.objects.filter(refund_id=refund_id, status=Status.PENDING), status)


def mark_refunded(*, payment_id: str) -> None:
    """All of the payment went back. Raises IllegalMove where it had, or where nothing was paid."""
    paid = Transaction.objects.filter(payment_id=payment_id, type=Type.PAYMENT, status=Status.SUCCEEDED)
    _move(payment_id, paid, Status.REFUNDED)


def _move(subject_id: str, row: QuerySet[Transaction], status: Status) -> None:
    if row.update(status=status) != 1:
        raise IllegalMove(f"{subject_id}: no row that becomes {status}")


def _record(
    kind: Type,
    status: Status,
    payment_id: str,
    merchant_id: str,
    amount: int,
    currency: str,
    at: datetime,
    refund_id: str | None = None,
) -> Transaction:
    transaction: Transaction = Transaction.objects.create(
        id=ids.new("txn_", at),
        merchant_id=merchant_id,
        payment_id=payment_id,
        refund_id=refund_id,
        type=kind,
        status=status,
        amount=amount,
        currency=currency,
        created_at=at,
    )
    return transaction
