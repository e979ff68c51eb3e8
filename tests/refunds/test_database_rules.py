"""What the database itself refuses, whoever asks: plain SQL, judged by SQLSTATE."""

from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction

from tests.conftest import Shop
from tests.factories import PaymentFactory, TransactionFactory
from tests.refunds.builders import NOBODY, RefundShop

CHECK_VIOLATION = "23514"
UNIQUE_VIOLATION = "23505"
FOREIGN_KEY_VIOLATION = "23503"
NOT_ALLOWED = "42501"
COMPLETED = "status = 'completed', completed_at = now()"
FAILED = "status = 'failed', failure_code = 'rejected_by_bank'"


def sqlstate(attack: str, *values: Any) -> str | None:
    """How the database refuses, None where it does not."""
    try:
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
            cursor.execute(attack, values)
    except DatabaseError as refusal:
        return str(getattr(refusal.__cause__, "sqlstate", None))
    return None


def update(assignment: str) -> str | None:
    return sqlstate(f"UPDATE refunds_refund SET {assignment}")


@pytest.fixture
def refund(counter: RefundShop) -> dict[str, Any]:
    """One that is processing."""
    return counter.refund(counter.paid(), amount=50_000, reason="other", note="n", metadata={"a": 1})


@pytest.mark.parametrize(
    "assignment",
    [
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
    ],
)
def test_invalid_refund_changes_are_refused_by_the_database(refund: dict[str, Any], assignment: str) -> None:
    assert update(assignment) == CHECK_VIOLATION


@pytest.mark.parametrize("end", [COMPLETED, FAILED, "status = 'canceled'"])
@pytest.mark.parametrize(
    "assignment",
    [
        "status = 'pending', completed_at = NULL, failure_code = NULL",
        f"{COMPLETED}, failure_code = NULL",
        f"{FAILED}, completed_at = NULL",
        "status = 'canceled', completed_at = NULL, failure_code = NULL",
    ],
)
def test_final_refund_status_never_changes(refund: dict[str, Any], end: str, assignment: str) -> None:
    assert update(end) is None
    if assignment.partition(",")[0] != end.partition(",")[0]:
        assert update(assignment) == CHECK_VIOLATION


@pytest.mark.parametrize(
    ("end", "assignment"),
    [
        (COMPLETED, "completed_at = completed_at + interval '1 day'"),
        (FAILED, "failure_code = 'other'"),
        (f"{COMPLETED}, returned_at = now()", "returned_at = NULL"),
        (f"{COMPLETED}, returned_at = now()", "returned_at = now() + interval '1 day'"),
    ],
)
def test_how_it_ended_stays_so(refund: dict[str, Any], end: str, assignment: str) -> None:
    assert update(end) is None
    assert update(assignment) == CHECK_VIOLATION


@pytest.mark.parametrize("end", [COMPLETED, FAILED])
def test_a_refund_that_was_sent_nowhere_ends_canceled_or_not_at_all(counter: RefundShop, end: str) -> None:
    counter.refund(counter.paid(payer=NOBODY))
    assert update(end) == CHECK_VIOLATION
    assert update("status = 'canceled'") is None
    assert update("route = 'bank:sandbox'") == CHECK_VIOLATION


@pytest.mark.parametrize("attack", ["DELETE FROM refunds_refund", "TRUNCATE refunds_refund CASCADE"])
def test_a_refund_is_never_deleted(refund: dict[str, Any], attack: str) -> None:
    assert sqlstate(attack) == NOT_ALLOWED


COPY = """INSERT INTO refunds_refund (id, merchant_id, payment_id, transaction_id, amount, currency, status,
        route, created_at, updated_at, actor, request_id, cancel_actor, cancel_request_id,
        awaiting_approval)
    SELECT %s, %s, %s, %s, {amount}, currency, {status}, route, created_at, updated_at,
        actor, request_id, cancel_actor, cancel_request_id, awaiting_approval
    FROM refunds_refund"""


def copied(*values: str, amount: str = "50000", status: str = "'pending'") -> str | None:
    """How the database takes a refund of these ids: its own, its merchant's, its payment's, its row's."""
    return sqlstate(COPY.format(amount=amount, status=status), *values)


def test_a_refund_is_of_its_merchants_own_payment_and_row(
    refund: dict[str, Any], shop: Shop, other_shop: Shop
) -> None:
    new_id, mine, theirs = "ref_000000000000000000000000000", shop.merchant, other_shop.merchant
    payment_id, their_payment = refund["payment_id"], PaymentFactory(merchant=theirs).id
    told = {"type": "refund", "status": "pending", "amount": -50_000, "refund_id": new_id}
    row = TransactionFactory(merchant=mine, payment_id=payment_id, **told)
    assert copied(new_id, theirs.id, payment_id, row.id) == FOREIGN_KEY_VIOLATION
    assert copied(new_id, mine.id, their_payment, row.id) == FOREIGN_KEY_VIOLATION
    assert copied(new_id, theirs.id, their_payment, row.id) == FOREIGN_KEY_VIOLATION
    assert copied(new_id, mine.id, payment_id, refund["transaction_id"]) == FOREIGN_KEY_VIOLATION
    assert copied("ref_" + "1" * 27, mine.id, payment_id, row.id) == FOREIGN_KEY_VIOLATION
    assert copied(new_id, mine.id, payment_id, row.id, amount="1") == FOREIGN_KEY_VIOLATION
    assert copied(new_id, mine.id, payment_id, row.id, status="'completed'") == CHECK_VIOLATION
    assert copied(new_id, mine.id, payment_id, row.id) is None
    assert copied(new_id, mine.id, payment_id, row.id) == UNIQUE_VIOLATION


# --- the payment's counters -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "assignment",
    [
        "amount_refunding = 150001",
        "amount_refunding = -1",
        "amount_refunded = 100001",  # with the 50,000 that are under way
        "amount_refunded = -1",
        "status = 'refunded'",
        "status = 'refunded', amount_refunding = 0, amount_refunded = 149999",
        "amount_received = 49999",
    ],
)
def test_no_more_goes_back_than_came_in(refund: dict[str, Any], assignment: str) -> None:
    assert sqlstate(f"UPDATE payments_payment SET {assignment}") == CHECK_VIOLATION


@pytest.mark.parametrize("counters", ["amount_refunding = 1", "amount_refunded = 1"])
def test_nothing_goes_back_of_what_never_came(shop: Shop, counters: str) -> None:
    shop.qr_code()
    assert sqlstate(f"UPDATE payments_payment SET {counters}") == CHECK_VIOLATION
