"""Write the history. Journals are told; they never ask."""

from datetime import datetime

from core import ids
from transactions.models import Status, Transaction, Type


def record_payment(
    *, payment_id: str, merchant_id: str, amount: int, currency: str, at: datetime
) -> Transaction:
    """The row of a payment that succeeded; `amount` (satang) is what was received."""
    return _record(Type.PAYMENT, Status.SUCCEEDED, payment_id, merchant_id, amount, currency, at)


def record_failure(
    *, payment_id: str, merchant_id: str, amount: int, currency: str, at: datetime
) -> Transaction:
    """The row of an attempt that failed."""
    return _record(Type.FAILED, Status.FAILED, payment_id, merchant_id, amount, currency, at)


def _record(
    kind: Type, status: Status, payment_id: str, merchant_id: str, amount: int, currency: str, at: datetime
) -> Transaction:
    transaction: Transaction = Transaction.objects.create(
        id=ids.new("txn_", at),
        merchant_id=merchant_id,
        payment_id=payment_id,
        type=kind,
        status=status,
        amount=amount,
        currency=currency,
        created_at=at,
    )
    return transaction
