"""Write the history, and with it the ledger. Journals are told; they never ask."""

from collections.abc import Sequence
from datetime import datetime

from django.db.models import QuerySet

from core import ids, rows
from transactions import bulk, ledger
from transactions.models import Fact, IllegalMove, Status, Transaction, Type


def record_payment(
    *,
    payment_id: str,
    merchant_id: str,
    amount: int,
    currency: str,
    source: str,
    at: datetime,
    is_confirmed: bool = True,
) -> Transaction:
    """A payment that succeeded: `amount` (satang) is what was received, from the account `source`.

    is_confirmed: see `ledger.credit`.
    """
    ledger.credit(
        merchant_id=merchant_id,
        fact=Fact.PAYMENT,
        subject_id=payment_id,
        amount=amount,
        source=source,
        at=at,
        is_confirmed=is_confirmed,
    )
    return _record(_row(Type.PAYMENT, Status.SUCCEEDED, payment_id, merchant_id, amount, currency, at))


def record_payments(credits: Sequence[bulk.Credit], *, currency: str, source: str, at: datetime) -> None:
    """What `record_payment` does for each, by a few statements; the source is a bank."""
    bulk.credit_all(Fact.PAYMENT, credits, source=source, at=at)
    rows.copy_in(
        [
            _row(Type.PAYMENT, Status.SUCCEEDED, each.subject_id, each.merchant_id, each.amount, currency, at)
            for each in credits
        ]
    )


def record_failure(
    *, payment_id: str, merchant_id: str, amount: int, currency: str, at: datetime
) -> Transaction:
    """The row of an attempt that failed."""
    return _record(_row(Type.FAILED, Status.FAILED, payment_id, merchant_id, amount, currency, at))


def record_refund(
    *, refund_id: str, payment_id: str, merchant_id: str, amount: int, currency: str, at: datetime
) -> Transaction:
    """The row of a refund that begins; `amount` (satang) is positive here and negative in the history.

    Its money moves by `transactions.ledger`, step by step.
    """
    row = _row(
        Type.REFUND, Status.PENDING, payment_id, merchant_id, -amount, currency, at, refund_id=refund_id
    )
    return _record(row)


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


def _record(row: Transaction) -> Transaction:
    row.save(force_insert=True)
    return row


def _row(
    kind: Type,
    status: Status,
    payment_id: str,
    merchant_id: str,
    amount: int,
    currency: str,
    at: datetime,
    refund_id: str | None = None,
) -> Transaction:
    """Not stored yet."""
    return rows.new(
        Transaction,
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
