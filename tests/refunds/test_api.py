"""Refunds in the API: creation, refusals, retrieval and the list."""

from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.db import connection

from core import clock
from tests.conftest import Shop
from tests.reconciliation.builders import Seller, decide
from tests.refunds.builders import OBJECT, PAYEE, REFUNDS, RefundShop, error_of, send_due_refunds
from tests.tables import count_rows
from transfers.models import Transfer


@pytest.mark.slow
def test_refund_without_amount_is_a_full_refund(refund_shop: RefundShop) -> None:
    payment_id = refund_shop.paid()
    refund = refund_shop.refund(payment_id)
    assert refund.keys() == OBJECT
    assert (refund["payment_id"], refund["amount"], refund["currency"]) == (payment_id, 150_000, "THB")
    assert (refund["status"], refund["pending_reason"]) == ("pending", "processing")
    assert [refund[name] for name in ("reason", "note", "metadata", "failure_code", "completed_at")] == [
        None
    ] * 5
    assert refund_shop.read(refund) == refund
    assert refund_shop.balance() == (0, 150_000)
    (row,) = refund_shop.shop.get("/v1/transactions?type=refund").json()["transactions"]
    assert (row["transaction_id"], row["status"], row["amount"]) == (
        refund["transaction_id"],
        "pending",
        -150_000,
    )
    payment = refund_shop.shop.payment(payment_id)
    assert (payment["status"], payment["amount_refunded"]) == ("succeeded", 0)


@pytest.mark.slow
def test_refund_fields_are_returned(refund_shop: RefundShop) -> None:
    given = {"amount": 1, "reason": "duplicate", "note": "หนึ่งจาน", "metadata": {"table": 4, "a": [1.5, None]}}
    refund = refund_shop.refund(refund_shop.paid(), **given)
    assert given.items() <= refund.items()
    assert given.items() <= refund_shop.read(refund).items()


@pytest.mark.slow
def test_partial_refunds_add_up_to_the_payment(refund_shop: RefundShop) -> None:
    payment_id = refund_shop.paid()
    refund_shop.refund(payment_id, amount=50_000)
    refund_shop.refund(payment_id, amount=99_999)
    assert error_of(refund_shop.ask(payment_id, amount=2)) == (400, "refund_amount_exceeded", "amount")
    assert refund_shop.refund(payment_id)["amount"] == 1
    for answer in (refund_shop.ask(payment_id), refund_shop.ask(payment_id, amount=1)):
        assert error_of(answer) == (400, "refund_amount_exceeded", "amount")
    assert refund_shop.balance() == (0, 150_000)


INVALID: dict[str, list[Any]] = {
    "amount": [0, -1, "1", 1.5, True, [1], -(2**63)],
    "reason": ["", "because", 1],
    "note": ["", "x" * 256, 1],
    "payment_id": ["", None, 1, "x" * 65],
    "metadata": [[], {str(number): number for number in range(51)}],
    "destination": [
        *("KBANK", [], {}),
        PAYEE | {"bank_code": "999"},
        PAYEE | {"bank_code": 4},
        PAYEE | {"bank_account": "123"},
        PAYEE | {"bank_account": "123456789x"},
        PAYEE | {"bank_account": "405123456789"},
        PAYEE | {"account_name": ""},
        {name: PAYEE[name] for name in ("bank_code", "bank_account")},
    ],
}


@pytest.mark.slow
def test_invalid_refund_field_is_named(refund_shop: RefundShop, subtests: pytest.Subtests) -> None:
    payment_id = refund_shop.paid()
    for field, value in [(field, value) for field, values in INVALID.items() for value in values]:
        with subtests.test(f"{field}={value!r}"[:40]):
            answer = refund_shop.ask(**{"payment_id": payment_id, field: value})
            assert error_of(answer) == (400, f"invalid_{field}", field)
    missing = refund_shop.shop.post(REFUNDS, {"amount": 100})
    assert error_of(missing) == (400, "invalid_payment_id", "payment_id")


def test_refund_over_remaining_amount_is_refused(refund_shop: RefundShop) -> None:
    payment_id = refund_shop.paid()
    for amount in (150_001, 10**12, 2**63 - 1):
        assert error_of(refund_shop.ask(payment_id, amount=amount)) == (
            400,
            "refund_amount_exceeded",
            "amount",
        )


def test_refund_of_unknown_payment_is_refused(refund_shop: RefundShop) -> None:
    for payment_id in ("pay_x", "nothing", "qr_000000000000000000000000000", "pay_" + "0" * 27):
        assert error_of(refund_shop.ask(payment_id)) == (404, "payment_not_found", "payment_id")


def test_refund_of_another_merchants_payment_is_refused(refund_shop: RefundShop, other_shop: Shop) -> None:
    payment_id = refund_shop.paid()
    answer = other_shop.post(REFUNDS, {"payment_id": payment_id})
    assert error_of(answer) == (404, "payment_not_found", "payment_id")


def test_only_succeeded_payments_can_be_refunded(refund_shop: RefundShop) -> None:
    pending, declined, late = (refund_shop.shop.qr_code() for _ in range(3))
    refund_shop.bank.notify(declined, type="decline")
    refused = (400, "payment_not_refundable", None)
    for code in (pending, declined):
        assert error_of(refund_shop.ask(code["payment_id"])) == refused
    with time_machine.travel(clock.now() + timedelta(minutes=16)):
        answer = refund_shop.ask(late["payment_id"])
        assert error_of(answer) == refused
        assert "expired" in answer.json()["error"]["message"]


@pytest.mark.slow
def test_refunded_payment_cannot_be_refunded(refund_shop: RefundShop, served_by: Any) -> None:
    served_by()
    payment_id = refund_shop.paid()
    refund_shop.refund(payment_id)
    send_due_refunds(2)
    assert error_of(refund_shop.ask(payment_id)) == (400, "payment_not_refundable", None)


@pytest.mark.slow
def test_refund_over_the_balance_is_refused_and_writes_nothing(refund_shop: RefundShop) -> None:
    payment_id = refund_shop.paid()
    taken = refund_shop.shop.post("/v1/withdrawals", {"amount": 100_000, "currency": "THB"} | PAYEE)
    assert taken.status_code == 200, taken.content
    before = count_rows()
    answer = refund_shop.ask(payment_id, amount=50_001)
    assert count_rows() == before
    assert error_of(answer) == (402, "insufficient_funds", None)
    assert answer.json()["error"]["type"] == "payment_error"
    assert refund_shop.refund(payment_id, amount=50_000)["status"] == "pending"


def test_refused_refund_writes_nothing(refund_shop: RefundShop) -> None:
    payment_id = refund_shop.paid()
    before = count_rows()
    for body in ({"amount": 150_001}, {"amount": 0}, {"reason": "x"}):
        assert refund_shop.ask(payment_id, **body).status_code == 400
    assert count_rows() == before


@pytest.mark.slow
def test_refund_is_limited_by_the_received_amount(refund_shop: RefundShop) -> None:
    bank_transaction = Seller(refund_shop.shop, refund_shop.bank).mismatch(150_002)
    decide("accept", bank_transaction)
    payment_id = bank_transaction.payment_id or ""
    assert error_of(refund_shop.ask(payment_id, amount=150_003))[1] == "refund_amount_exceeded"
    assert refund_shop.refund(payment_id)["amount"] == 150_002


@pytest.mark.slow
def test_same_idempotency_key_creates_one_refund(refund_shop: RefundShop) -> None:
    payment_id = refund_shop.paid()
    first, again = (refund_shop.ask(payment_id, amount=100, key="refund 1") for _ in range(2))
    thai = refund_shop.shop.post(
        "/Thai/v1/refunds", {"amount": 100, "payment_id": payment_id}, key="refund 1"
    )
    assert {answer.content for answer in (first, again, thai)} == {first.content}
    assert [answer.get("Idempotent-Replayed") for answer in (first, again, thai)] == [None, "true", "true"]
    assert error_of(refund_shop.ask(payment_id, amount=101, key="refund 1"))[:2] == (
        409,
        "idempotency_key_reused",
    )
    assert refund_shop.balance() == (149_900, 100)


def test_refund_without_a_sending_bank_is_refused(refund_shop: RefundShop, settings: Any) -> None:
    payment_id = refund_shop.paid()
    settings.SANDBOX_BANK_SECRET = ""
    assert error_of(refund_shop.ask(payment_id)) == (400, "bank_not_configured", None)


def test_refund_account_is_never_stored_in_plain_text(refund_shop: RefundShop) -> None:
    refund = refund_shop.refund(refund_shop.paid(), destination=PAYEE, key="k")
    order = Transfer.objects.get(pk=refund["refund_id"])
    assert order.account == PAYEE["bank_account"]
    with connection.cursor() as cursor:
        for table in ("refunds_refund", "transfers_transfer", "webhooks_event", "idempotency_idempotencykey"):
            cursor.execute(f'SELECT t::text FROM "{table}" t')
            assert PAYEE["bank_account"] not in str(cursor.fetchall())


@pytest.fixture
def three(refund_shop: RefundShop, noon: datetime) -> list[dict[str, Any]]:
    """Refunds of two payments, an hour apart. The second is canceled."""
    with time_machine.travel(noon, tick=False) as clock:
        first, other = refund_shop.paid(), refund_shop.paid()
        made = []
        for number, payment_id in enumerate([first, first, other]):
            clock.move_to(noon + timedelta(hours=number))
            made.append(refund_shop.refund(payment_id, amount=100 + number))
        made[1] = refund_shop.act(made[1], "cancel").json()
    return made


def found(refund_shop: RefundShop, query: str = "") -> list[int]:
    return [refund["amount"] for refund in refund_shop.shop.get(f"{REFUNDS}?{query}").json()["refunds"]]


@pytest.mark.slow
def test_refunds_are_listed_newest_first(refund_shop: RefundShop, three: list[dict[str, Any]]) -> None:
    listed = refund_shop.shop.get(REFUNDS).json()
    assert listed == {"refunds": three[::-1], "total": 3, "limit": 20, "offset": 0}
    assert refund_shop.shop.get("/Thai/v1/refunds").json() == listed
    assert found(refund_shop, "limit=1&offset=1") == [101]


@pytest.mark.slow
def test_refunds_are_filtered_by_payment_status_and_dates(
    refund_shop: RefundShop, three: list[dict[str, Any]]
) -> None:
    for query, amounts in {
        "status=pending": [102, 100],
        "status=canceled": [101],
        "status=completed": [],
        f"payment_id={three[0]['payment_id']}": [101, 100],
        f"payment_id={three[0]['payment_id']}&status=pending": [100],
        "payment_id=pay_x": [],
        "start_date=2026-11-21T06:00:00Z": [102, 101],
        "end_date=2026-11-21T06:00:00Z": [101, 100],
        "start_date=2026-11-21&end_date=2026-11-21": [102, 101, 100],
        "start_date=2026-11-22": [],
    }.items():
        assert found(refund_shop, query) == amounts, query


def test_invalid_refund_filters_are_refused(shop: Shop) -> None:
    for query in [
        "status=refunded",
        "status=",
        "payment_id=",
        "start_date=x",
        "start_date=2026-11-22&end_date=2026-11-21",
    ]:
        refused = (400, "invalid_parameters", query.partition("=")[0])
        assert error_of(shop.get(f"{REFUNDS}?{query}")) == refused, query


def test_unknown_refund_is_not_found(shop: Shop) -> None:
    for refund_id in ("ref_x", "pay_" + "0" * 27, "ref_" + "0" * 27):
        for answer in (shop.get(f"{REFUNDS}/{refund_id}"), shop.post(f"{REFUNDS}/{refund_id}/cancel")):
            assert error_of(answer) == (404, "refund_not_found", None)


@pytest.mark.slow
def test_refund_of_another_merchant_is_not_found(refund_shop: RefundShop, other_shop: Shop) -> None:
    refund = refund_shop.refund(refund_shop.paid())
    assert error_of(other_shop.get(f"{REFUNDS}/{refund['refund_id']}"))[1] == "refund_not_found"
    assert error_of(other_shop.post(f"{REFUNDS}/{refund['refund_id']}/cancel"))[1] == "refund_not_found"
    assert other_shop.get(f"{REFUNDS}?payment_id={refund['payment_id']}").json()["total"] == 0
    assert refund_shop.read(refund) == refund


@pytest.mark.slow
def test_payment_has_at_most_100_pending_refunds(refund_shop: RefundShop) -> None:
    payment_id = refund_shop.paid()
    refunds = [refund_shop.refund(payment_id, amount=1) for _ in range(100)]
    assert error_of(refund_shop.ask(payment_id, amount=1)) == (400, "too_many_pending_refunds", None)
    assert refund_shop.balance() == (149_900, 100)
    refund_shop.act(refunds[0], "cancel")
    refund_shop.refund(payment_id, amount=1)
