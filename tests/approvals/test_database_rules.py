"""The database keeps what was asked and decided, whoever writes to it: plain SQL."""

import pytest
from django.db import DatabaseError, connection, transaction
from pytest_django import Settings

from tests.approvals.builders import decide_approval
from tests.conftest import SandboxBankClient, Shop
from tests.refunds.builders import PAYEE, RefundShop
from tests.withdrawals.builders import fund, withdrawn

pytestmark = pytest.mark.django_db
APPROVE = "UPDATE approvals_approval SET status = 'approved', decided_at = now(), decided_by = "


@pytest.fixture
def waits(shop: Shop, bank: SandboxBankClient, settings: Settings) -> str:
    """The id of a withdrawal that waits."""
    settings.APPROVAL_ITEM_LIMIT = 100
    fund(shop, bank)
    return str(withdrawn(shop)["withdrawal_id"])


def run(sql: str) -> None:
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql)


def refused(sql: str) -> bool:
    try:
        run(sql)
    except DatabaseError:
        return True
    return False


def test_requester_is_never_the_decider(waits: str) -> None:
    assert refused(f"{APPROVE} requested_by")
    assert refused(f"{APPROVE} ''")
    run(f"{APPROVE} 'staff:malee'")


@pytest.mark.parametrize(
    "change",
    [
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
    ],
)
def test_what_was_asked_for_never_changes(waits: str, change: str) -> None:
    assert refused(f"UPDATE approvals_approval SET {change}")


@pytest.mark.parametrize("how", ["approve", "reject"])
@pytest.mark.parametrize(
    "change",
    [
        "status = 'waiting', decided_by = '', decided_at = NULL",
        "status = 'approved'",
        "status = 'rejected', why = 'x'",
        "status = 'canceled'",
        "decided_by = 'staff:somsak'",
        "decided_at = now()",
        "why = 'another'",
    ],
)
def test_decided_approval_never_changes(waits: str, how: str, change: str) -> None:
    decide_approval(waits, how)
    assert refused(f"UPDATE approvals_approval SET {change}")


@pytest.mark.parametrize("sql", ["DELETE FROM approvals_approval", "TRUNCATE approvals_approval CASCADE"])
def test_approval_is_never_deleted(waits: str, sql: str) -> None:
    run("SET CONSTRAINTS ALL IMMEDIATE")
    assert refused(sql)


@pytest.mark.parametrize("status", ["approved", "rejected", "canceled"])
def test_approval_is_not_born_decided(waits: str, status: str) -> None:
    assert refused(
        f"""INSERT INTO approvals_approval (id, kind, subject_id, amount, bank_code, account_last4,
                account_name, status, reason, requested_by, request_id, requested_at, note, decided_by,
                decided_at, why)
            SELECT 'apr_x', kind, 'wd_x', amount, '', '', '', '{status}', reason, '', '', now(), '', 'x',
                now(), 'x'
            FROM approvals_approval"""
    )


def test_subject_has_one_approval(waits: str) -> None:
    copied = "kind, subject_id, amount, bank_code, account_last4, account_name, status, reason, requested_by"
    assert refused(
        f"""INSERT INTO approvals_approval
                (id, {copied}, request_id, requested_at, note, decided_by, why)
            SELECT 'apr_x', {copied}, '', now(), '', '', '' FROM approvals_approval"""
    )


@pytest.mark.parametrize("how", ["wait", "reject"])
@pytest.mark.parametrize("state", ["queued", "submitted"])
def test_order_without_approval_never_reaches_a_bank(waits: str, how: str, state: str) -> None:
    if how == "reject":
        decide_approval(waits, "reject")
    assert refused(
        f"UPDATE transfers_transfer SET state = '{state}', submitted_at = now(), completed_at = NULL"
    )


def test_order_that_was_queued_against_its_approval_never_reaches_a_bank(waits: str) -> None:
    run("SET LOCAL session_replication_role = replica")
    run("UPDATE transfers_transfer SET state = 'queued'")
    run("SET LOCAL session_replication_role = origin")
    assert refused("UPDATE transfers_transfer SET state = 'submitted', submitted_at = now()")


@pytest.mark.parametrize(
    "change",
    [
        "status = 'completed', completed_at = now(), awaiting_approval = false",
        "status = 'failed', failure_code = 'rejected_by_staff', awaiting_approval = false",
        "status = 'canceled'",
    ],
)
def test_refund_that_waits_does_not_end_against_its_approval(
    shop: Shop, bank: SandboxBankClient, settings: Settings, change: str
) -> None:
    settings.APPROVAL_ITEM_LIMIT = 100
    counter = RefundShop(shop, bank)
    counter.refund(counter.paid(), destination=PAYEE)
    assert refused(f"UPDATE refunds_refund SET {change}")


def test_approved_refund_does_not_wait_again(shop: Shop, bank: SandboxBankClient, settings: Settings) -> None:
    settings.APPROVAL_ITEM_LIMIT = 100
    counter = RefundShop(shop, bank)
    refund = counter.refund(counter.paid(), destination=PAYEE)
    decide_approval(refund["refund_id"], "approve")
    assert refused("UPDATE refunds_refund SET awaiting_approval = true")
