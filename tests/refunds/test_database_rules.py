"""Refunds in the database: rules that hold for every statement, tested with plain SQL."""

from typing import Any

import pytest

from tests.conftest import Shop
from tests.factories import PaymentFactory, TransactionFactory
from tests.refunds.builders import NOBODY, RefundShop
from tests.sqlstates import (
    CHECK_VIOLATION,
    FOREIGN_KEY_VIOLATION,
    NOT_ALLOWED,
    UNIQUE_VIOLATION,
    rolled_back,
    sqlstate,
)

COMPLETED = "status = 'completed', completed_at = now()"
FAILED = "status = 'failed', failure_code = 'rejected_by_bank'"


def update(assignment: str) -> str | None:
    return sqlstate(f"UPDATE refunds_refund SET {assignment}")


@pytest.fixture
def refund(refund_shop: RefundShop) -> dict[str, Any]:
    """A refund that is processing."""
    return refund_shop.refund(refund_shop.paid(), amount=50_000, reason="other", note="n", metadata={"a": 1})


@pytest.mark.slow
def test_invalid_refund_changes_are_refused_by_the_database(
    refund: dict[str, Any], subtests: pytest.Subtests
) -> None:
    for assignment in [
        "amount = amount + 1",
        "amount = 0",
        "currency = 'USD'",
        "reason = NULL",
        "note = 'other'",
        "metadata = '{}'",
        "metadata = NULL",
        "created_at = created_at - interval '1 day'",
        "route = ''",
        "route = 'bank:other'",
        "id = 'ref_000000000000000000000000000'",
        "status = 'paid'",
        "status = 'completed'",
        "completed_at = now()",
        "returned_at = now()",
        "status = 'failed'",
        "failure_code = 'rejected_by_bank'",
        f"{COMPLETED}, failure_code = 'rejected_by_bank'",
        f"{FAILED}, completed_at = now()",
        f"{FAILED}, returned_at = now()",
    ]:
        with subtests.test(assignment):
            assert update(assignment) == CHECK_VIOLATION


@pytest.mark.slow
def test_final_refund_never_changes(refund: dict[str, Any], subtests: pytest.Subtests) -> None:
    canceled, returned = "status = 'canceled'", f"{COMPLETED}, returned_at = now()"
    other_statuses = [
        "status = 'pending', completed_at = NULL, failure_code = NULL",
        f"{COMPLETED}, failure_code = NULL",
        f"{FAILED}, completed_at = NULL",
        "status = 'canceled', completed_at = NULL, failure_code = NULL",
    ]
    changes = [
        (end, other)
        for end in (COMPLETED, FAILED, canceled)
        for other in other_statuses
        if other.partition(",")[0] != end.partition(",")[0]
    ]
    changes += [
        (COMPLETED, "completed_at = completed_at + interval '1 day'"),
        (FAILED, "failure_code = 'other'"),
        (returned, "returned_at = NULL"),
        (returned, "returned_at = now() + interval '1 day'"),
    ]
    for end, assignment in changes:
        with subtests.test(f"{end}; {assignment}"), rolled_back():
            assert update(end) is None
            assert update(assignment) == CHECK_VIOLATION


def test_refund_without_destination_can_only_be_canceled(refund_shop: RefundShop) -> None:
    refund_shop.refund(refund_shop.paid(payer=NOBODY))
    assert [update(end) for end in (COMPLETED, FAILED)] == [CHECK_VIOLATION] * 2
    assert update("status = 'canceled'") is None
    assert update("route = 'bank:sandbox'") == CHECK_VIOLATION


def test_refund_is_never_deleted(refund: dict[str, Any]) -> None:
    for sql in ("DELETE FROM refunds_refund", "TRUNCATE refunds_refund CASCADE"):
        assert sqlstate(sql) == NOT_ALLOWED


COPY = """INSERT INTO refunds_refund (id, merchant_id, payment_id, transaction_id, amount, currency, status,
        route, created_at, updated_at, actor, request_id, cancel_actor, cancel_request_id,
        awaiting_approval)
    SELECT %s, %s, %s, %s, {amount}, currency, {status}, route, created_at, updated_at,
        actor, request_id, cancel_actor, cancel_request_id, awaiting_approval
    FROM refunds_refund"""


def copy(*ids: str, amount: str = "50000", status: str = "'pending'", sql: str = COPY) -> str | None:
    """Insert a refund with these ids of refund, merchant, payment and transaction."""
    return sqlstate(sql.format(amount=amount, status=status), *ids)


@pytest.mark.slow
def test_database_refuses_a_refund_of_a_payment_of_another_merchant(
    refund: dict[str, Any], shop: Shop, other_shop: Shop
) -> None:
    new_id, mine, theirs = "ref_000000000000000000000000000", shop.merchant, other_shop.merchant
    payment_id, their_payment = refund["payment_id"], PaymentFactory(merchant=theirs).id
    fields = {"type": "refund", "status": "pending", "amount": -50_000, "refund_id": new_id}
    row = TransactionFactory(merchant=mine, payment_id=payment_id, **fields)
    assert copy(new_id, theirs.id, payment_id, row.id) == FOREIGN_KEY_VIOLATION
    assert copy(new_id, mine.id, their_payment, row.id) == FOREIGN_KEY_VIOLATION
    assert copy(new_id, theirs.id, their_payment, row.id) == FOREIGN_KEY_VIOLATION
    assert copy(new_id, mine.id, payment_id, refund["transaction_id"]) == FOREIGN_KEY_VIOLATION
    assert copy("ref_" + "1" * 27, mine.id, payment_id, row.id) == FOREIGN_KEY_VIOLATION
    assert copy(new_id, mine.id, payment_id, row.id, amount="1") == FOREIGN_KEY_VIOLATION
    assert copy(new_id, mine.id, payment_id, row.id, status="'completed'") == CHECK_VIOLATION
    assert copy(new_id, mine.id, payment_id, row.id) == CHECK_VIOLATION  # the totals are those of before
    paid = "UPDATE payments_payment SET amount_refunding = 100000 WHERE status = 'succeeded'"
    with_totals = f"WITH totals AS ({paid}) {COPY}"
    assert copy(new_id, mine.id, payment_id, row.id, sql=with_totals) is None
    assert copy(new_id, mine.id, payment_id, row.id) == UNIQUE_VIOLATION


@pytest.mark.slow
def test_refunds_never_exceed_the_received_amount(refund: dict[str, Any], subtests: pytest.Subtests) -> None:
    for assignment in [
        "amount_refunding = 150001",
        "amount_refunding = -1",
        "amount_refunded = 100001",  # beside the pending 50,000
        "amount_refunded = -1",
        "status = 'refunded'",
        "status = 'refunded', amount_refunding = 0, amount_refunded = 149999",
        "amount_received = 49999",
    ]:
        with subtests.test(assignment):
            assert sqlstate(f"UPDATE payments_payment SET {assignment}") == CHECK_VIOLATION


def test_unpaid_payment_has_no_refunds(shop: Shop) -> None:
    shop.qr_code()
    for counters in ("amount_refunding = 1", "amount_refunded = 1"):
        assert sqlstate(f"UPDATE payments_payment SET {counters}") == CHECK_VIOLATION


@pytest.mark.slow
def test_refund_totals_are_those_of_the_refunds(refund: dict[str, Any], subtests: pytest.Subtests) -> None:
    for assignment in [
        "amount_refunding = 0",
        "amount_refunding = 49999",
        "amount_refunded = 1",
        "amount_refunding = 0, amount_refunded = 50000",
    ]:
        with subtests.test(assignment):
            assert sqlstate(f"UPDATE payments_payment SET {assignment}") == CHECK_VIOLATION


def test_refunded_amount_of_a_reversal_is_that_of_its_refunds(refund_shop: RefundShop) -> None:
    refund_shop.paid()
    reversal = """INSERT INTO refunds_refundreversal
            (reversal_id, payment_id, amount, refunded_amount, route, created_at)
        SELECT 'btx_1', id, amount, {shown}, 'bank:sandbox', created_at FROM payments_payment"""
    assert sqlstate(reversal.format(shown=1)) == CHECK_VIOLATION
    assert sqlstate(reversal.format(shown=0)) is None
    assert sqlstate("UPDATE refunds_refundreversal SET refunded_amount = amount") == CHECK_VIOLATION
