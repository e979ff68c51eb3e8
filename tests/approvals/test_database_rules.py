"""Approvals in the database: rules that hold for every statement, tested with plain SQL."""

from typing import Any

import pytest
from django.db import DatabaseError, transaction
from pytest_django import Settings

from core import clock
from ledger import services as ledger
from reconciliation.models import BankTransaction
from tests.approvals.builders import decide_approval
from tests.conftest import SandboxBankClient, Shop
from tests.reconciliation.builders import Seller, decide
from tests.refunds.builders import PAYEE, RefundShop
from tests.sqlstates import CHECK_VIOLATION, NOT_ALLOWED, UNIQUE_VIOLATION, run, sqlstate
from tests.withdrawals.builders import fund, withdrawn

pytestmark = [pytest.mark.slow, pytest.mark.django_db]
UPDATE = "UPDATE approvals_approval SET"
APPROVE = f"{UPDATE} status = 'approved', decided_at = now(), decided_by = "
COLUMNS = (
    "amount, bank_code, account_last4, account_name, reason, requested_by, request_id, requested_at, note"
)

WRITE_OFF = """INSERT INTO reconciliation_resolution
    (subject_id, type, reopen_count, actor, note, request_id, ledger_subject_id, created_at)
    VALUES (%s, 'written_off', %s, 'staff:malee', 'lost', '', %s, now())"""


@pytest.fixture
def waits(shop: Shop, bank: SandboxBankClient, settings: Settings) -> str:
    """The id of a withdrawal that waits."""
    settings.APPROVAL_ITEM_LIMIT = 100
    fund(shop, bank)
    return str(withdrawn(shop)["withdrawal_id"])


@pytest.fixture
def waiting_refund(shop: Shop, bank: SandboxBankClient, settings: Settings) -> dict[str, Any]:
    settings.APPROVAL_ITEM_LIMIT = 100
    refund_shop = RefundShop(shop, bank)
    return refund_shop.refund(refund_shop.paid(), destination=PAYEE)


def test_requester_of_an_approval_cannot_decide_it(waits: str) -> None:
    assert sqlstate(f"{APPROVE} requested_by") == CHECK_VIOLATION
    assert sqlstate(f"{APPROVE} ''") == CHECK_VIOLATION
    run(f"{APPROVE} 'staff:malee'")


def test_requested_fields_of_an_approval_never_change(waits: str, subtests: pytest.Subtests) -> None:
    for change in [
        "amount = amount - 1",
        "merchant_id = NULL",
        "subject_id = 'wd_000000000000000000000000000'",
        "kind = 'refund'",
        "reason = 'daily_limit'",
        "requested_by = 'key:00000000'",
        "requested_at = requested_at - interval '1 day'",
        "account_last4 = '0000'",
        "account_name = 'Somebody'",
        "note = 'x'",
        "status = 'within_limits', reason = ''",
        "status = 'rejected', decided_by = 'staff:malee', decided_at = now()",
        "decided_by = 'staff:malee', decided_at = now()",
    ]:
        with subtests.test(change):
            assert sqlstate(f"{UPDATE} {change}") == CHECK_VIOLATION


@pytest.mark.parametrize("how", ["approve", "reject"])
def test_decided_approval_never_changes(waits: str, how: str, subtests: pytest.Subtests) -> None:
    decide_approval(waits, how)
    for change in [
        "status = 'waiting', decided_by = '', decided_at = NULL",
        "status = 'approved'",
        "status = 'rejected', decision_note = 'x'",
        "status = 'canceled'",
        "decided_by = 'staff:somsak'",
        "decided_at = now()",
        "decision_note = 'another'",
    ]:
        with subtests.test(change):
            assert sqlstate(f"{UPDATE} {change}") == CHECK_VIOLATION


def test_approval_is_never_deleted(waits: str) -> None:
    for sql in ("DELETE FROM approvals_approval", "TRUNCATE approvals_approval CASCADE"):
        assert sqlstate(sql) == NOT_ALLOWED


def test_new_approval_is_undecided(waits: str) -> None:
    for status in ("approved", "rejected", "canceled"):
        sql = f"""INSERT INTO approvals_approval
                (id, kind, subject_id, status, {COLUMNS}, decided_by, decided_at, decision_note)
            SELECT 'apr_x', kind, 'wd_x', '{status}', {COLUMNS}, 'x', now(), 'x' FROM approvals_approval"""
        assert sqlstate(sql) == CHECK_VIOLATION


def test_second_approval_of_the_same_subject_is_refused(waits: str) -> None:
    sql = f"""INSERT INTO approvals_approval
            (id, kind, subject_id, status, {COLUMNS}, decided_by, decision_note)
        SELECT 'apr_x', kind, subject_id, status, {COLUMNS}, '', '' FROM approvals_approval"""
    assert sqlstate(sql) == UNIQUE_VIOLATION


def test_order_without_approval_is_never_sent(waits: str) -> None:
    for is_rejected in (False, True):
        if is_rejected:
            decide_approval(waits, "reject")
        for state in ("queued", "submitted"):
            change = f"state = '{state}', submitted_at = now(), completed_at = NULL"
            assert sqlstate(f"UPDATE transfers_transfer SET {change}") == CHECK_VIOLATION


def test_order_queued_without_approval_is_never_sent(waits: str) -> None:
    run("SET LOCAL session_replication_role = replica")
    run("UPDATE transfers_transfer SET state = 'queued'")
    run("SET LOCAL session_replication_role = origin")
    sql = "UPDATE transfers_transfer SET state = 'submitted', submitted_at = now()"
    assert sqlstate(sql) == CHECK_VIOLATION


def test_database_refuses_to_complete_a_refund_that_waits_for_approval(
    waiting_refund: dict[str, Any],
) -> None:
    for change in [
        "status = 'completed', completed_at = now(), awaiting_approval = false",
        "status = 'failed', failure_code = 'rejected_by_staff', awaiting_approval = false",
        "status = 'canceled'",
    ]:
        assert sqlstate(f"UPDATE refunds_refund SET {change}") == CHECK_VIOLATION


def test_approved_refund_cannot_return_to_waiting_for_approval(waiting_refund: dict[str, Any]) -> None:
    decide_approval(waiting_refund["refund_id"], "approve")
    assert sqlstate("UPDATE refunds_refund SET awaiting_approval = true") == CHECK_VIOLATION


@pytest.fixture
def reversal(shop: Shop, bank: SandboxBankClient, settings: Settings) -> BankTransaction:
    """A bank took back money that had left."""
    settings.APPROVAL_ITEM_LIMIT = 100
    seller = Seller(shop, bank)
    return seller.reverse(seller.sale(), 150_001)


def test_loss_is_not_booked_without_approval(reversal: BankTransaction) -> None:
    write_off = (WRITE_OFF, reversal.id, 0, reversal.id)
    assert sqlstate(*write_off) == CHECK_VIOLATION
    decide("write_off", reversal)
    assert sqlstate(*write_off) == CHECK_VIOLATION
    decide_approval(reversal.id, "reject", actor="staff:somsak")
    assert sqlstate(*write_off) == CHECK_VIOLATION


def test_approval_allows_one_write_off(reversal: BankTransaction) -> None:
    decide("write_off", reversal)
    decide_approval(reversal.id, "approve", actor="staff:somsak")
    decide("reopen", reversal)
    assert sqlstate(WRITE_OFF, reversal.id, 1, "wof_x") == CHECK_VIOLATION


def test_approval_of_another_amount_allows_no_write_off(reversal: BankTransaction) -> None:
    decide("write_off", reversal)
    run("SET LOCAL session_replication_role = replica")
    run(f"{UPDATE} status = 'within_limits', reason = '', amount = amount - 1")
    run("SET LOCAL session_replication_role = origin")
    assert sqlstate(WRITE_OFF, reversal.id, 0, reversal.id) == CHECK_VIOLATION


def test_ledger_books_no_loss_that_nobody_wrote_off(reversal: BankTransaction) -> None:
    decide("write_off", reversal)
    with pytest.raises(DatabaseError, match="nobody wrote off"), transaction.atomic():
        ledger.write_off(subject_id=reversal.id, amount=150_001, to="bank:sandbox", now=clock.now())
        run("SELECT")


def test_manual_return_is_not_completed_without_approval(
    shop: Shop, bank: SandboxBankClient, settings: Settings
) -> None:
    settings.APPROVAL_ITEM_LIMIT = 100
    made = decide("record_manual_return", Seller(shop, bank).unmatched(), bank_reference="counter 7")
    complete = "UPDATE reconciliation_return SET status = 'completed', completed_at = now()"
    assert sqlstate(complete) == CHECK_VIOLATION
    decide_approval(made.id, "approve", actor="staff:somsak")
    made.refresh_from_db()
    assert made.status == "completed"
