"""The state machine, in the code and in the database."""

from datetime import timedelta
from itertools import product

import pytest
from django.db import DatabaseError, connection, transaction

from core import clock
from payments.models import MOVES, IllegalMove, Payment, Status
from tests.factories import PaymentFactory

PAIRS = list(product(Status, Status))
COMPLETED = {Status.SUCCEEDED, Status.REFUNDED}
ROAD = {
    Status.PENDING: [],
    Status.SUCCEEDED: [Status.SUCCEEDED],
    Status.FAILED: [Status.FAILED],
    Status.EXPIRED: [Status.EXPIRED],
    Status.REFUNDED: [Status.SUCCEEDED, Status.REFUNDED],
}


def payment_in(status: Status) -> Payment:
    payment: Payment = PaymentFactory()
    for step in ROAD[status]:
        back = payment.amount if step == Status.REFUNDED else 0
        payment.move_to(step, completed_at=clock.now() if step in COMPLETED else None, amount_refunded=back)
    return payment


def update(payment: Payment, assignment: str) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"UPDATE payments_payment SET {assignment} WHERE id = %s", [payment.id])


@pytest.mark.django_db
@pytest.mark.parametrize(("start", "target"), [pair for pair in PAIRS if pair[0] != pair[1]])
def test_code_and_database_allow_the_same_moves(start: Status, target: Status) -> None:
    payment = payment_in(start)
    allowed = target in MOVES.get(start, set())
    completed = "now()" if target in COMPLETED else "NULL"
    assignment = f"status = '{target}', completed_at = {completed}"
    if target == Status.REFUNDED:
        assignment += ", amount_refunded = amount"
    if allowed:
        update(payment, assignment)
        return
    with pytest.raises(DatabaseError, match="cannot go from"):
        update(payment, assignment)
    with pytest.raises(IllegalMove):
        payment.move_to(target)


@pytest.mark.django_db
@pytest.mark.parametrize(
    "attack",
    [
        "amount = amount + 1",
        "amount = 0",
        "currency = 'USD'",
        "qr_code_id = 'qr_000000000000000000000000000'",
        "created_at = created_at - interval '1 day'",
        "status = 'paid'",
        "status = 'succeeded'",
        "completed_at = now()",
        "amount_refunded = amount + 1",
        "amount_refunded = -1",
        "amount_refunding = amount + 1",
        "amount_refunding = -1",
        "amount_refunding = 1",
        "id = 'pay_000000000000000000000000000'",
    ],
)
def test_the_database_refuses(attack: str) -> None:
    payment = payment_in(Status.PENDING)
    with pytest.raises(DatabaseError):
        update(payment, attack)


@pytest.mark.django_db
def test_a_payment_is_never_deleted() -> None:
    payment = payment_in(Status.PENDING)
    with pytest.raises(DatabaseError, match="never deleted"), transaction.atomic():
        payment.delete()


@pytest.mark.django_db
def test_a_payment_is_not_born_expired_or_refunded() -> None:
    for status in (Status.EXPIRED, Status.REFUNDED):
        completed_at = clock.now() if status in COMPLETED else None
        with pytest.raises(DatabaseError, match="not born"), transaction.atomic():
            PaymentFactory(status=status, completed_at=completed_at)


def test_status_by_the_clock_turns_at_the_very_instant() -> None:
    now = clock.now()
    payment = Payment(status=Status.PENDING, expires_at=now)
    assert payment.status_at(now - timedelta(milliseconds=1)) == Status.PENDING
    assert payment.status_at(now) == Status.EXPIRED
