"""The state machine, in the code and in the database; and what the database itself refuses, whoever asks."""

from itertools import product
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction

from approvals.models import Approval
from core import clock, ids
from core.state_machines import IllegalTransition
from tests.factories import MerchantFactory
from withdrawals.models import RETURNED_BY_BANK, Withdrawal, WithdrawalStatus

pytestmark = pytest.mark.django_db
CHECK_VIOLATION = "23514"
UNIQUE_VIOLATION = "23505"
FOREIGN_KEY_VIOLATION = "23503"
NOT_NULL_VIOLATION = "23502"
NOT_ALLOWED = "42501"
TABLE = "withdrawals_withdrawal"
ROAD: dict[WithdrawalStatus, list[WithdrawalStatus]] = {
    WithdrawalStatus.PENDING: [],
    WithdrawalStatus.PROCESSING: [WithdrawalStatus.PROCESSING],
    WithdrawalStatus.SUCCEEDED: [WithdrawalStatus.PROCESSING, WithdrawalStatus.SUCCEEDED],
    WithdrawalStatus.FAILED: [WithdrawalStatus.PROCESSING, WithdrawalStatus.FAILED],
    WithdrawalStatus.CANCELED: [WithdrawalStatus.CANCELED],
}
PAIRS = [pair for pair in product(WithdrawalStatus, WithdrawalStatus) if pair[0] != pair[1]]


def a_withdrawal(**changes: Any) -> Withdrawal:
    now = clock.now()
    fields: dict[str, Any] = {
        "id": ids.new("wd_", now),
        "amount": 100_000,
        "currency": "THB",
        "bank": "sandbox",
        "bank_code": "014",
        "account_sealed": "sealed",
        "account_last4": "4567",
        "account_name": "Somchai",
        "metadata": {"week": 47},
        "created_at": now,
        "updated_at": now,
    }
    merchant = changes.pop("merchant", None) or MerchantFactory()
    made: Withdrawal = Withdrawal.objects.create(merchant=merchant, **fields | changes)
    return made


def fields_of(start: WithdrawalStatus, target: WithdrawalStatus) -> dict[str, Any]:
    """What belongs to a move."""
    if target == WithdrawalStatus.SUCCEEDED:
        return {"completed_at": clock.now()}
    if target == WithdrawalStatus.FAILED and start == WithdrawalStatus.PENDING:
        return {"failure_code": "rejected_by_staff"}
    if target == WithdrawalStatus.FAILED:
        return {
            "failure_code": RETURNED_BY_BANK if start == WithdrawalStatus.SUCCEEDED else "rejected_by_bank"
        }
    return {}


def waiting(withdrawal: Withdrawal) -> Approval:
    """Its approval, which waits."""
    made: Approval = Approval.objects.create(
        id=ids.new("apr_", clock.now()),
        kind="withdrawal",
        subject_id=withdrawal.id,
        merchant=withdrawal.merchant,
        amount=withdrawal.amount,
        status="waiting",
        reason="item_limit",
        requested_by="key:ab12cd34",
        requested_at=clock.now(),
    )
    return made


def decide(approval: Approval, status: str) -> None:
    approval.status, approval.decided_by, approval.decided_at = status, "staff:malee", clock.now()
    approval.decision_note = "wrong account"
    approval.save()


def withdrawal_in(status: WithdrawalStatus, *, is_waiting: bool = False) -> Withdrawal:
    made = a_withdrawal(awaiting_approval=is_waiting)
    if is_waiting:
        waiting(made)
    for step in ROAD[status]:
        made.transition(step, **fields_of(WithdrawalStatus(made.status), step))
    return made


def run(sql: str, values: tuple[Any, ...] = ()) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql, values)


def sqlstate(sql: str, values: tuple[Any, ...] = ()) -> str:
    with pytest.raises(DatabaseError) as refused:
        run(sql, values)
    return str(getattr(refused.value.__cause__, "sqlstate", None))


def update(withdrawal: Withdrawal, **fields: Any) -> None:
    assigned = ", ".join(f"{name} = %s" for name in fields)
    run(f"UPDATE {TABLE} SET {assigned} WHERE id = %s", (*fields.values(), withdrawal.id))


@pytest.mark.parametrize(("start", "target"), PAIRS)
def test_code_and_database_allow_the_same_transitions(
    start: WithdrawalStatus, target: WithdrawalStatus
) -> None:
    fields = fields_of(start, target)
    withdrawal = withdrawal_in(start)
    if fields.get("failure_code") == "rejected_by_staff":
        decide(waiting(withdrawal), "rejected")
    if target in Withdrawal.TRANSITIONS.get(start, set()):
        update(withdrawal, status=target.value, **fields)
        return
    with pytest.raises(DatabaseError, match="cannot change from"):
        update(withdrawal, status=target.value, **fields)
    with pytest.raises(IllegalTransition):
        withdrawal.transition(target, **fields)


PENDING_ATTACKS = [
    "amount = amount + 1",
    "amount = 0",
    "currency = 'USD'",
    "bank = 'other'",
    "bank_code = '004'",
    "account_sealed = 'other'",
    "account_last4 = '0000'",
    "account_name = 'Somsak'",
    "reference = 'other'",
    "metadata = '{}'",
    "created_at = created_at - interval '1 day'",
    "id = 'wd_000000000000000000000000000'",
    "status = 'paid'",
    "status = 'succeeded', completed_at = now()",
    "completed_at = now()",
    "failure_code = 'other'",
    "status = 'failed'",
    "status = 'failed', failure_code = 'rejected_by_bank'",
    "status = 'failed', failure_code = 'rejected_by_staff'",
    "status = 'failed', failure_code = 'returned_by_bank', completed_at = now()",
    "status = 'processing'",  # it waits for approval
    "status = 'processing', awaiting_approval = false",
    "status = 'canceled'",  # and still waits
]
AFTERWARDS = [
    (WithdrawalStatus.PROCESSING, "status = 'failed'"),
    (WithdrawalStatus.PROCESSING, "status = 'succeeded'"),
    (WithdrawalStatus.PROCESSING, "status = 'failed', failure_code = 'rejected_by_staff'"),
    (
        WithdrawalStatus.PROCESSING,
        "status = 'failed', failure_code = 'returned_by_bank', completed_at = now()",
    ),
    (WithdrawalStatus.PROCESSING, "awaiting_approval = true"),
    (WithdrawalStatus.SUCCEEDED, "completed_at = NULL"),
    (WithdrawalStatus.SUCCEEDED, "completed_at = completed_at + interval '1 day'"),
    (WithdrawalStatus.SUCCEEDED, "status = 'failed', failure_code = 'rejected_by_bank'"),
    (WithdrawalStatus.SUCCEEDED, "status = 'failed', failure_code = 'returned_by_bank', completed_at = NULL"),
    (WithdrawalStatus.FAILED, "failure_code = NULL"),
    (WithdrawalStatus.FAILED, "completed_at = now()"),
]
ATTACKS = [*((WithdrawalStatus.PENDING, attack) for attack in PENDING_ATTACKS), *AFTERWARDS]


@pytest.mark.parametrize(("status", "attack"), ATTACKS)
def test_the_database_refuses(status: WithdrawalStatus, attack: str) -> None:
    withdrawal = withdrawal_in(status, is_waiting=status == WithdrawalStatus.PENDING)
    refused = sqlstate(f"UPDATE {TABLE} SET {attack} WHERE id = %s", (withdrawal.id,))
    assert refused == CHECK_VIOLATION


@pytest.mark.parametrize(
    ("changes", "refused"),
    [
        ({"amount": 99}, CHECK_VIOLATION),
        ({"amount": 200_000_001}, CHECK_VIOLATION),
        ({"currency": "USD"}, CHECK_VIOLATION),
        ({"bank": ""}, CHECK_VIOLATION),
        ({"bank_code": "14"}, CHECK_VIOLATION),
        ({"bank_code": "scb"}, CHECK_VIOLATION),
        ({"account_last4": "456"}, CHECK_VIOLATION),
        ({"account_last4": "x567"}, CHECK_VIOLATION),
        ({"account_sealed": ""}, CHECK_VIOLATION),
        ({"account_name": ""}, CHECK_VIOLATION),
        ({"status": "processing"}, CHECK_VIOLATION),
        ({"status": "failed", "failure_code": "rejected_by_staff"}, CHECK_VIOLATION),
        ({"failure_code": "x"}, CHECK_VIOLATION),
        ({"completed_at": clock.now()}, CHECK_VIOLATION),
        ({"account_sealed": None}, NOT_NULL_VIOLATION),
        ({"account_name": None}, NOT_NULL_VIOLATION),
    ],
)
def test_the_database_takes_no_such_withdrawal(changes: dict[str, Any], refused: str) -> None:
    with pytest.raises(DatabaseError) as error, transaction.atomic():
        a_withdrawal(**changes)
    assert str(getattr(error.value.__cause__, "sqlstate", None)) == refused


def test_no_withdrawal_is_there_twice() -> None:
    made = a_withdrawal()
    with pytest.raises(DatabaseError) as error, transaction.atomic():
        a_withdrawal(id=made.id)
    assert str(getattr(error.value.__cause__, "sqlstate", None)) == UNIQUE_VIOLATION


def test_a_withdrawal_is_somebodys() -> None:
    made = a_withdrawal()
    deletion = ("DELETE FROM merchants_merchant WHERE id = %s", (made.merchant_id,))
    with pytest.raises(DatabaseError) as error, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(*deletion)
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
    assert str(getattr(error.value.__cause__, "sqlstate", None)) == FOREIGN_KEY_VIOLATION


def test_approved_withdrawal_does_not_wait_again_and_is_not_rejected() -> None:
    withdrawal = withdrawal_in(WithdrawalStatus.PENDING, is_waiting=True)
    decide(Approval.objects.get(), "approved")
    update(withdrawal, awaiting_approval=False)
    for attack in ("awaiting_approval = true", "status = 'failed', failure_code = 'rejected_by_staff'"):
        assert sqlstate(f"UPDATE {TABLE} SET {attack} WHERE id = %s", (withdrawal.id,)) == CHECK_VIOLATION
    update(withdrawal, status="processing")


def test_rejected_withdrawal_is_never_sent() -> None:
    withdrawal = withdrawal_in(WithdrawalStatus.PENDING, is_waiting=True)
    decide(Approval.objects.get(), "rejected")
    update(withdrawal, awaiting_approval=False)
    attack = (f"UPDATE {TABLE} SET status = 'processing' WHERE id = %s", (withdrawal.id,))
    assert sqlstate(*attack) == CHECK_VIOLATION


@pytest.mark.parametrize("sql", [f"DELETE FROM {TABLE}", f"TRUNCATE {TABLE} CASCADE"])
@pytest.mark.parametrize("status", WithdrawalStatus)
def test_a_withdrawal_is_never_deleted(status: WithdrawalStatus, sql: str) -> None:
    withdrawal_in(status)
    run("SET CONSTRAINTS ALL IMMEDIATE")
    assert sqlstate(sql) == NOT_ALLOWED
    assert Withdrawal.objects.count() == 1
