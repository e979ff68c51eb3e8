"""Rules of the database for rows of the transaction history."""

from itertools import product

import pytest
from django.db import DatabaseError, connection, transaction

from core.database.state_machines import IllegalTransition
from tests.factories import TransactionFactory
from transactions import services
from transactions.models import Transaction, TransactionStatus, TransactionType

pytestmark = pytest.mark.django_db
CHECK_VIOLATION = "23514"
NOT_ALLOWED = "42501"
LEGAL = {
    TransactionType.PAYMENT: {TransactionStatus.SUCCEEDED, TransactionStatus.REFUNDED},
    TransactionType.FAILED: {TransactionStatus.FAILED},
    TransactionType.REFUND: {
        TransactionStatus.PENDING,
        TransactionStatus.SUCCEEDED,
        TransactionStatus.FAILED,
    },
}
MOVES = {
    (TransactionType.REFUND, TransactionStatus.PENDING, TransactionStatus.SUCCEEDED),
    (TransactionType.REFUND, TransactionStatus.PENDING, TransactionStatus.FAILED),
    (TransactionType.PAYMENT, TransactionStatus.SUCCEEDED, TransactionStatus.REFUNDED),
}
FORBIDDEN = [
    (kind, before, after)
    for kind, legal in LEGAL.items()
    for before, after in product(legal, TransactionStatus)
    if before != after and (kind, before, after) not in MOVES
]


def write(kind: TransactionType, status: TransactionStatus) -> Transaction:
    refund = {"amount": -150_000, "refund_id": "ref_1"} if kind is TransactionType.REFUND else {}
    made: Transaction = TransactionFactory(type=kind, status=status, payment_id="pay_1", **refund)
    return made


def move(status: TransactionStatus) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("UPDATE transactions_transaction SET status = %s", [status])


def sqlstate(refused: pytest.ExceptionInfo[DatabaseError]) -> str:
    return str(getattr(refused.value.__cause__, "sqlstate", None))


@pytest.mark.parametrize(("kind", "status"), [*product(TransactionType, TransactionStatus)])
def test_transaction_status_must_fit_the_type(kind: TransactionType, status: TransactionStatus) -> None:
    if status in LEGAL[kind]:
        write(kind, status)
        return
    with pytest.raises(DatabaseError) as refused, transaction.atomic():
        write(kind, status)
    assert sqlstate(refused) == CHECK_VIOLATION


@pytest.mark.parametrize(("kind", "before", "after"), sorted(MOVES))
def test_allowed_transaction_transitions_are_accepted_by_the_database(
    kind: TransactionType, before: TransactionStatus, after: TransactionStatus
) -> None:
    write(kind, before)
    move(after)
    assert Transaction.objects.get().status == after


@pytest.mark.parametrize(("kind", "before", "after"), sorted(FORBIDDEN))
def test_forbidden_transaction_transitions_are_refused_by_the_database(
    kind: TransactionType, before: TransactionStatus, after: TransactionStatus
) -> None:
    write(kind, before)
    with pytest.raises(DatabaseError) as refused:
        move(after)
    assert sqlstate(refused) in {NOT_ALLOWED, CHECK_VIOLATION}
    assert Transaction.objects.get().status == before


@pytest.mark.parametrize("status", [TransactionStatus.SUCCEEDED, TransactionStatus.FAILED])
def test_refund_transaction_is_completed_once(status: TransactionStatus) -> None:
    write(TransactionType.REFUND, TransactionStatus.PENDING)
    services.complete_refunds("ref_1", status=status)
    for again in (TransactionStatus.SUCCEEDED, TransactionStatus.FAILED):
        with pytest.raises(IllegalTransition, match="ref_1"):
            services.complete_refunds("ref_1", status=again)
    assert Transaction.objects.get().status == status


def test_unknown_refund_transaction_cannot_be_completed() -> None:
    with pytest.raises(IllegalTransition, match="ref_2"):
        services.complete_refunds("ref_2", status=TransactionStatus.FAILED)


def test_payment_transaction_is_refunded_once() -> None:
    write(TransactionType.PAYMENT, TransactionStatus.SUCCEEDED)
    services.mark_refunded(payment_id="pay_1")
    with pytest.raises(IllegalTransition, match="pay_1"):
        services.mark_refunded(payment_id="pay_1")


def test_failed_transaction_cannot_be_refunded() -> None:
    write(TransactionType.FAILED, TransactionStatus.FAILED)
    with pytest.raises(IllegalTransition, match="pay_1"):
        services.mark_refunded(payment_id="pay_1")
