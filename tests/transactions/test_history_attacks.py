"""What the database refuses to do to rows of the history, and what nobody can ask twice."""

from itertools import product

import pytest
from django.db import DatabaseError, connection, transaction

from tests.factories import TransactionFactory
from transactions import services
from transactions.models import IllegalMove, Status, Transaction, Type

pytestmark = pytest.mark.django_db
CHECK_VIOLATION = "23514"
NOT_ALLOWED = "42501"
LEGAL = {
    Type.PAYMENT: {Status.SUCCEEDED, Status.REFUNDED},
    Type.FAILED: {Status.FAILED},
    Type.REFUND: {Status.PENDING, Status.SUCCEEDED, Status.FAILED},
}
MOVES = {
    (Type.REFUND, Status.PENDING, Status.SUCCEEDED),
    (Type.REFUND, Status.PENDING, Status.FAILED),
    (Type.PAYMENT, Status.SUCCEEDED, Status.REFUNDED),
}
FORBIDDEN = [
    (kind, before, after)
    for kind, legal in LEGAL.items()
    for before, after in product(legal, Status)
    if before != after and (kind, before, after) not in MOVES
]


def write(kind: Type, status: Status) -> Transaction:
    refund = {"amount": -150_000, "refund_id": "ref_1"} if kind is Type.REFUND else {}
    made: Transaction = TransactionFactory(type=kind, status=status, payment_id="pay_1", **refund)
    return made


def move(status: Status) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("UPDATE transactions_transaction SET status = %s", [status])


def sqlstate(refused: pytest.ExceptionInfo[DatabaseError]) -> str:
    return str(getattr(refused.value.__cause__, "sqlstate", None))


@pytest.mark.parametrize(("kind", "status"), [*product(Type, Status)])
def test_a_row_has_only_a_status_that_its_type_can_have(kind: Type, status: Status) -> None:
    if status in LEGAL[kind]:
        write(kind, status)
        return
    with pytest.raises(DatabaseError) as refused, transaction.atomic():
        write(kind, status)
    assert sqlstate(refused) == CHECK_VIOLATION


@pytest.mark.parametrize(("kind", "before", "after"), sorted(MOVES))
def test_a_row_moves_as_refunds_and_payments_do(kind: Type, before: Status, after: Status) -> None:
    write(kind, before)
    move(after)
    assert Transaction.objects.get().status == after


@pytest.mark.parametrize(("kind", "before", "after"), sorted(FORBIDDEN))
def test_a_row_moves_in_no_other_way(kind: Type, before: Status, after: Status) -> None:
    write(kind, before)
    with pytest.raises(DatabaseError) as refused:
        move(after)
    assert sqlstate(refused) in {NOT_ALLOWED, CHECK_VIOLATION}
    assert Transaction.objects.get().status == before


@pytest.mark.parametrize("status", [Status.SUCCEEDED, Status.FAILED])
def test_a_refund_ends_once(status: Status) -> None:
    write(Type.REFUND, Status.PENDING)
    services.settle_refund(refund_id="ref_1", status=status)
    for again in (Status.SUCCEEDED, Status.FAILED):
        with pytest.raises(IllegalMove, match="ref_1"):
            services.settle_refund(refund_id="ref_1", status=again)
    assert Transaction.objects.get().status == status


def test_a_refund_that_never_began_does_not_end() -> None:
    with pytest.raises(IllegalMove, match="ref_2"):
        services.settle_refund(refund_id="ref_2", status=Status.FAILED)


def test_a_payment_goes_back_once() -> None:
    write(Type.PAYMENT, Status.SUCCEEDED)
    services.mark_refunded(payment_id="pay_1")
    with pytest.raises(IllegalMove, match="pay_1"):
        services.mark_refunded(payment_id="pay_1")


def test_what_failed_does_not_go_back() -> None:
    write(Type.FAILED, Status.FAILED)
    with pytest.raises(IllegalMove, match="pay_1"):
        services.mark_refunded(payment_id="pay_1")
