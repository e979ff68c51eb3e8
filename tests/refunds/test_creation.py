"""A refund is asked for: what is made, what is refused, and that a refusal leaves nothing."""

from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.db import connection

from core import clock
from tests.conftest import Shop
from tests.refunds.builders import OBJECT, PAYEE, REFUNDS, RefundShop, error_of, send_due_refunds
from tests.tables import count_rows
from transfers.models import Transfer


def test_a_refund_is_made_of_all_that_was_paid(counter: RefundShop) -> None:
    payment_id = counter.paid()
    refund = counter.refund(payment_id)
    assert refund.keys() == OBJECT
    assert (refund["payment_id"], refund["amount"], refund["currency"]) == (payment_id, 150_000, "THB")
    assert (refund["status"], refund["pending_reason"]) == ("pending", "processing")
    assert [refund[name] for name in ("reason", "note", "metadata", "failure_code", "completed_at")] == [
        None
    ] * 5
    assert counter.read(refund) == refund
    assert counter.balance() == (0, 150_000)
    (row,) = counter.shop.get("/v1/transactions?type=refund").json()["transactions"]
    assert (row["transaction_id"], row["status"], row["amount"]) == (
        refund["transaction_id"],
        "pending",
        -150_000,
    )
    payment = counter.shop.payment(payment_id)
    assert (payment["status"], payment["amount_refunded"]) == ("succeeded", 0)


def test_refund_fields_are_returned(counter: RefundShop) -> None:
    given = {"amount": 1, "reason": "duplicate", "note": "หนึ่งจาน", "metadata": {"table": 4, "a": [1.5, None]}}
    refund = counter.refund(counter.paid(), **given)
    assert given.items() <= refund.items()
    assert given.items() <= counter.read(refund).items()


def test_partial_refunds_add_up_to_the_payment(counter: RefundShop) -> None:
    payment_id = counter.paid()
    counter.refund(payment_id, amount=50_000)
    counter.refund(payment_id, amount=99_999)
    assert error_of(counter.ask(payment_id, amount=2)) == (400, "refund_amount_exceeded", "amount")
    assert counter.refund(payment_id)["amount"] == 1
    for answer in (counter.ask(payment_id), counter.ask(payment_id, amount=1)):
        assert error_of(answer) == (400, "refund_amount_exceeded", "amount")
    assert counter.balance() == (0, 150_000)


@pytest.mark.parametrize("amount", [0, -1, "1", 1.0, True, None, [1], -(2**63)])
def test_invalid_refund_amount_is_refused(counter: RefundShop, amount: Any) -> None:
    answer = counter.ask(counter.paid(), amount=amount)
    assert error_of(answer) == (400, "invalid_amount", "amount")
    assert "2000000" not in answer.json()["error"]["message"]


@pytest.mark.parametrize("amount", [150_001, 10**12, 2**63 - 1])
def test_refund_over_remaining_amount_is_refused(counter: RefundShop, amount: int) -> None:
    answer = counter.ask(counter.paid(), amount=amount)
    assert error_of(answer) == (400, "refund_amount_exceeded", "amount")


BAD: dict[str, list[Any]] = {
    "reason": ["", "because", None, 1],
    "note": ["", "x" * 256, None, 1],
    "payment_id": ["", None, 1, "x" * 65],
    "metadata": [None, [], {str(number): number for number in range(51)}],
    "destination": [
        *(None, "KBANK", [], {}),
        PAYEE | {"bank_code": "999"},
        PAYEE | {"bank_code": 4},
        PAYEE | {"bank_account": "123"},
        PAYEE | {"bank_account": "123456789x"},
        PAYEE | {"bank_account": "405123456789"},
        PAYEE | {"account_name": ""},
        {name: PAYEE[name] for name in ("bank_code", "bank_account")},
    ],
}


@pytest.mark.parametrize(("field", "value"), [(field, value) for field in BAD for value in BAD[field]])
def test_a_bad_field_is_named(counter: RefundShop, field: str, value: Any) -> None:
    answer = counter.ask(**{"payment_id": counter.paid(), field: value})
    assert error_of(answer) == (400, f"invalid_{field}", field)


def test_a_payment_must_be_named(shop: Shop) -> None:
    assert error_of(shop.post(REFUNDS, {"amount": 100})) == (400, "invalid_payment_id", "payment_id")


@pytest.mark.parametrize(
    "payment_id", ["pay_x", "nothing", "qr_000000000000000000000000000", "pay_" + "0" * 27]
)
def test_a_payment_that_is_not_there_is_not_found(counter: RefundShop, payment_id: str) -> None:
    assert error_of(counter.ask(payment_id)) == (404, "payment_not_found", None)


def test_anothers_payment_is_not_there(counter: RefundShop, other_shop: Shop) -> None:
    payment_id = counter.paid()
    answer = other_shop.post(REFUNDS, {"payment_id": payment_id})
    assert error_of(answer) == (404, "payment_not_found", None)


def test_only_a_succeeded_payment_can_be_refunded(counter: RefundShop) -> None:
    pending, declined, late = (counter.shop.qr_code() for _ in range(3))
    counter.bank.notify(declined, type="decline")
    refused = (400, "payment_not_refundable", None)
    for code in (pending, declined):
        assert error_of(counter.ask(code["payment_id"])) == refused
    with time_machine.travel(clock.now() + timedelta(minutes=16)):
        answer = counter.ask(late["payment_id"])
        assert error_of(answer) == refused
        assert "expired" in answer.json()["error"]["message"]


def test_a_payment_of_which_all_went_back_cannot_be_refunded(counter: RefundShop, served_by: Any) -> None:
    served_by()
    payment_id = counter.paid()
    counter.refund(payment_id)
    send_due_refunds(2)
    assert error_of(counter.ask(payment_id)) == (400, "payment_not_refundable", None)


def test_the_balance_must_cover_it_or_nothing_is_left_behind(counter: RefundShop) -> None:
    payment_id = counter.paid()
    taken = counter.shop.post("/v1/withdrawals", {"amount": 100_000, "currency": "THB"} | PAYEE)
    assert taken.status_code == 200, taken.content
    before = count_rows()
    answer = counter.ask(payment_id, amount=50_001, key="refund 1")
    assert count_rows() == before
    assert error_of(answer) == (402, "insufficient_funds", None)
    assert answer.json()["error"]["type"] == "payment_error"
    assert counter.refund(payment_id, amount=50_000)["status"] == "pending"


def test_a_refusal_by_the_rules_leaves_nothing(counter: RefundShop) -> None:
    payment_id = counter.paid()
    before = count_rows()
    for body in ({"amount": 150_001}, {"amount": 0}, {"reason": "x"}):
        assert counter.ask(payment_id, key="k", **body).status_code == 400
    assert count_rows() == before


def test_what_was_received_bounds_it_where_that_differs(counter: RefundShop) -> None:
    payment_id = counter.paid()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE payments_payment SET amount_received = 150002 WHERE id = %s", [payment_id])
    counter.paid(100)  # what more was received is in no balance here
    assert error_of(counter.ask(payment_id, amount=150_003))[1] == "refund_amount_exceeded"
    assert counter.refund(payment_id)["amount"] == 150_002


def test_the_same_key_makes_one_refund(counter: RefundShop) -> None:
    payment_id = counter.paid()
    first, again = (counter.ask(payment_id, amount=100, key="refund 1") for _ in range(2))
    thai = counter.shop.post("/Thai/v1/refunds", {"amount": 100, "payment_id": payment_id}, key="refund 1")
    assert {answer.content for answer in (first, again, thai)} == {first.content}
    assert [answer.get("Idempotent-Replayed") for answer in (first, again, thai)] == [None, "true", "true"]
    assert error_of(counter.ask(payment_id, amount=101, key="refund 1"))[:2] == (
        409,
        "idempotency_key_reused",
    )
    assert counter.balance() == (149_900, 100)


def test_a_live_merchant_without_a_bank_that_can_send_is_told(counter: RefundShop, settings: Any) -> None:
    payment_id = counter.paid()
    settings.SANDBOX_BANK_SECRET = ""
    assert error_of(counter.ask(payment_id)) == (400, "bank_not_configured", None)


def test_nothing_that_is_kept_shows_the_account(counter: RefundShop) -> None:
    refund = counter.refund(counter.paid(), destination=PAYEE, key="k")
    order = Transfer.objects.get(pk=refund["refund_id"])
    assert order.account == PAYEE["bank_account"]
    with connection.cursor() as cursor:
        for table in ("refunds_refund", "transfers_transfer", "webhooks_event", "idempotency_idempotencykey"):
            cursor.execute(f'SELECT t::text FROM "{table}" t')
            assert PAYEE["bank_account"] not in str(cursor.fetchall())
