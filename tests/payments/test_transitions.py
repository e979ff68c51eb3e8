"""Transitions of payments, in Python and in the database."""

from datetime import timedelta
from itertools import product

import pytest
from django.db import DatabaseError, IntegrityError, connection, transaction

from core import clock, ids
from core.database.state_machines import IllegalTransition
from payments.models import Payment, PaymentStatus
from tests.factories import PaymentFactory, reverse_all

PAIRS = list(product(PaymentStatus, PaymentStatus))
COMPLETED = {PaymentStatus.SUCCEEDED, PaymentStatus.REFUNDED}
PATHS = {
    PaymentStatus.PENDING: [],
    PaymentStatus.SUCCEEDED: [PaymentStatus.SUCCEEDED],
    PaymentStatus.FAILED: [PaymentStatus.FAILED],
    PaymentStatus.EXPIRED: [PaymentStatus.EXPIRED],
    PaymentStatus.REFUNDED: [PaymentStatus.SUCCEEDED, PaymentStatus.REFUNDED],
}


def payment_in(status: PaymentStatus) -> Payment:
    payment: Payment = PaymentFactory()
    for step in PATHS[status]:
        back = payment.amount if step == PaymentStatus.REFUNDED else 0
        paid_at = payment.completed_at or clock.now() if step in COMPLETED else None
        if step == PaymentStatus.REFUNDED:
            reverse_all(payment)
        payment.transition(step, completed_at=paid_at, amount_refunded=back)
    return payment


def update(payment: Payment, assignment: str) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(f"UPDATE payments_payment SET {assignment} WHERE id = %s", [payment.id])


@pytest.mark.django_db
@pytest.mark.parametrize(("start", "target"), [pair for pair in PAIRS if pair[0] != pair[1]])
def test_code_and_database_allow_the_same_payment_transitions(
    start: PaymentStatus, target: PaymentStatus
) -> None:
    payment = payment_in(start)
    allowed = target in Payment.TRANSITIONS.get(start, set())
    assignment = f"status = '{target}'"
    if start not in COMPLETED:
        assignment += f", completed_at = {'now()' if target in COMPLETED else 'NULL'}"
    if target == PaymentStatus.REFUNDED:
        assignment += ", amount_refunded = amount"
        if allowed:
            reverse_all(payment)
    if allowed:
        update(payment, assignment)
        return
    with pytest.raises(DatabaseError, match="cannot change from"):
        update(payment, assignment)
    with pytest.raises(IllegalTransition):
        payment.transition(target)


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
def test_database_refuses_invalid_payment_changes(attack: str) -> None:
    payment = payment_in(PaymentStatus.PENDING)
    with pytest.raises(DatabaseError):
        update(payment, attack)


@pytest.mark.django_db
def test_database_refuses_a_code_with_the_id_of_another_payment() -> None:
    with pytest.raises(IntegrityError, match="payment_code_has_its_id"), transaction.atomic():
        PaymentFactory(qr_code_id=ids.of_code(Payment.new_id(clock.now())))


@pytest.mark.django_db
def test_database_refuses_to_delete_a_payment() -> None:
    payment = payment_in(PaymentStatus.PENDING)
    with pytest.raises(DatabaseError, match=r"never deleted|is deleted"), transaction.atomic():
        payment.delete()


@pytest.mark.django_db
def test_new_payment_cannot_be_expired_or_refunded() -> None:
    for status in (PaymentStatus.EXPIRED, PaymentStatus.REFUNDED):
        completed_at = clock.now() if status in COMPLETED else None
        with pytest.raises(DatabaseError, match="cannot begin"), transaction.atomic():
            PaymentFactory(status=status, completed_at=completed_at)


def test_pending_payment_reads_as_expired_from_expires_at() -> None:
    now = clock.now()
    payment = Payment(status=PaymentStatus.PENDING, expires_at=now)
    assert payment.status_at(now - timedelta(milliseconds=1)) == PaymentStatus.PENDING
    assert payment.status_at(now) == PaymentStatus.EXPIRED
