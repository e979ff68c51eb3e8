"""Withdrawals in the database: transitions, as in the code, and rules that hold for every statement."""

from itertools import product
from typing import Any

import pytest
from django.db import DatabaseError, transaction

from approvals.models import Approval
from core import clock, ids
from core.database.state_machines import IllegalTransition
from core.failures import RETURNED_BY_BANK
from tests.factories import MerchantFactory
from tests.sqlstates import (
    CHECK_VIOLATION,
    NOT_ALLOWED,
    NOT_NULL_VIOLATION,
    UNIQUE_VIOLATION,
    run,
    sqlstate,
    sqlstate_of,
)
from withdrawals.models import Withdrawal, WithdrawalStatus

pytestmark = pytest.mark.django_db
TABLE = "withdrawals_withdrawal"
PENDING, PROCESSING, SUCCEEDED, FAILED, CANCELED = WithdrawalStatus
STEPS_TO: dict[WithdrawalStatus, list[WithdrawalStatus]] = {
    PENDING: [],
    PROCESSING: [PROCESSING],
    SUCCEEDED: [PROCESSING, SUCCEEDED],
    FAILED: [PROCESSING, FAILED],
    CANCELED: [CANCELED],
}


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
    made: Withdrawal = Withdrawal.objects.create(merchant=MerchantFactory(), **fields | changes)
    return made


def fields_of(start: WithdrawalStatus, target: WithdrawalStatus) -> dict[str, Any]:
    """The other columns of a transition."""
    if target == SUCCEEDED:
        return {"completed_at": clock.now()}
    codes = {PENDING: "rejected_by_staff", SUCCEEDED: RETURNED_BY_BANK}
    return {"failure_code": codes.get(start, "rejected_by_bank")} if target == FAILED else {}


def waiting_approval(withdrawal: Withdrawal) -> Approval:
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
        waiting_approval(made)
    for step in STEPS_TO[status]:
        made.transition(step, **fields_of(WithdrawalStatus(made.status), step))
    return made


def update(withdrawal: Withdrawal, **fields: Any) -> None:
    assigned = ", ".join(f"{name} = %s" for name in fields)
    run(f"UPDATE {TABLE} SET {assigned} WHERE id = %s", *fields.values(), withdrawal.id)


@pytest.mark.slow
def test_code_and_database_allow_the_same_withdrawal_transitions(subtests: pytest.Subtests) -> None:
    for start, target in product(WithdrawalStatus, WithdrawalStatus):
        if start == target:
            continue
        with subtests.test(f"{start} to {target}"):
            fields, withdrawal = fields_of(start, target), withdrawal_in(start)
            if fields.get("failure_code") == "rejected_by_staff":
                decide(waiting_approval(withdrawal), "rejected")
            if target in Withdrawal.TRANSITIONS.get(start, set()):
                update(withdrawal, status=target.value, **fields)
                continue
            with pytest.raises(DatabaseError, match="cannot change from"):
                update(withdrawal, status=target.value, **fields)
            with pytest.raises(IllegalTransition):
                withdrawal.transition(target, **fields)


REFUSED_CHANGES = {
    PENDING: [
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
        # It waits for approval.
        "status = 'processing'",
        "status = 'processing', awaiting_approval = false",
        "status = 'canceled'",
    ],
    PROCESSING: [
        "status = 'failed'",
        "status = 'succeeded'",
        "status = 'failed', failure_code = 'rejected_by_staff'",
        "status = 'failed', failure_code = 'returned_by_bank', completed_at = now()",
        "awaiting_approval = true",
    ],
    SUCCEEDED: [
        "completed_at = NULL",
        "completed_at = completed_at + interval '1 day'",
        "status = 'failed', failure_code = 'rejected_by_bank'",
        "status = 'failed', failure_code = 'returned_by_bank', completed_at = NULL",
    ],
    FAILED: ["failure_code = NULL", "completed_at = now()"],
}


@pytest.mark.parametrize("status", REFUSED_CHANGES)
def test_database_refuses_changes_of_a_withdrawal(
    status: WithdrawalStatus, subtests: pytest.Subtests
) -> None:
    withdrawal = withdrawal_in(status, is_waiting=status == PENDING)
    for change in REFUSED_CHANGES[status]:
        with subtests.test(change):
            sql = f"UPDATE {TABLE} SET {change} WHERE id = %s"
            assert sqlstate(sql, withdrawal.id) == CHECK_VIOLATION


@pytest.mark.slow
def test_database_refuses_invalid_new_withdrawals(subtests: pytest.Subtests) -> None:
    cases: list[dict[str, Any]] = [
        {"amount": 99},
        {"amount": 200_000_001},
        {"currency": "USD"},
        {"bank": ""},
        {"bank_code": "14"},
        {"bank_code": "scb"},
        {"account_last4": "456"},
        {"account_last4": "x567"},
        {"account_sealed": ""},
        {"account_name": ""},
        {"status": "processing"},
        {"status": "failed", "failure_code": "rejected_by_staff"},
        {"failure_code": "x"},
        {"completed_at": clock.now()},
        {"account_sealed": None},
        {"account_name": None},
    ]
    for changes in cases:
        expected = NOT_NULL_VIOLATION if None in changes.values() else CHECK_VIOLATION
        with subtests.test(str(changes)):
            with pytest.raises(DatabaseError) as error, transaction.atomic():
                a_withdrawal(**changes)
            assert sqlstate_of(error.value) == expected


def test_withdrawal_id_is_unique() -> None:
    made = a_withdrawal()
    with pytest.raises(DatabaseError) as error, transaction.atomic():
        a_withdrawal(id=made.id)
    assert sqlstate_of(error.value) == UNIQUE_VIOLATION


def test_approved_withdrawal_cannot_wait_again_or_be_rejected() -> None:
    withdrawal = withdrawal_in(PENDING, is_waiting=True)
    decide(Approval.objects.get(), "approved")
    update(withdrawal, awaiting_approval=False)
    for change in ("awaiting_approval = true", "status = 'failed', failure_code = 'rejected_by_staff'"):
        assert sqlstate(f"UPDATE {TABLE} SET {change}") == CHECK_VIOLATION
    update(withdrawal, status="processing")


def test_rejected_withdrawal_is_never_sent() -> None:
    withdrawal = withdrawal_in(PENDING, is_waiting=True)
    decide(Approval.objects.get(), "rejected")
    update(withdrawal, awaiting_approval=False)
    assert sqlstate(f"UPDATE {TABLE} SET status = 'processing'") == CHECK_VIOLATION


@pytest.mark.parametrize("status", WithdrawalStatus)
def test_withdrawal_is_never_deleted(status: WithdrawalStatus) -> None:
    withdrawal_in(status)
    for sql in (f"DELETE FROM {TABLE}", f"TRUNCATE {TABLE} CASCADE"):
        assert sqlstate(sql) == NOT_ALLOWED
    assert Withdrawal.objects.count() == 1
