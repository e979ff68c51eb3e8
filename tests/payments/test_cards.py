"""Payments by card token, over the API and with the acquirer of the sandbox."""

from typing import Any

import pytest
from django.db import connection
from pytest_django import Settings

from ledger import services as ledger
from payments.models import CardCharge, Payment
from payments.openapi import PAYMENT
from payments.serializers import looks_like_card_number
from sandbox.acquirer_server import AcquirerServer
from sandbox.models import SandboxCharge
from tests.conftest import Shop, open_shop
from tests.error_messages import check_error
from tests.payments.card_builders import PATH, error_of, events, inquire, request, rows_of, short_call_timeout
from tests.tables import count_rows

pytestmark = pytest.mark.slow

FORMS = ["/v1/payments", "/Thai/v1/payments"]
DECLINES = {
    "tok_test_insufficient_funds": "insufficient_funds",
    "tok_test_declined": "card_declined",
    "tok_test_expired": "expired_card",
}


@pytest.mark.parametrize("path", FORMS)
@pytest.mark.parametrize(
    ("token", "brand"), [("tok_test_visa", "visa"), ("tok_test_mastercard", "mastercard")]
)
def test_charged_card_makes_payment_succeed(card_shop: Shop, path: str, token: str, brand: str) -> None:
    answer = card_shop.post(
        path, request(token, description="Two tickets", reference="A-1", metadata={"a": 1})
    )
    paid = answer.json()
    assert answer.status_code == 200, answer.content
    assert paid.keys() == PAYMENT.keys()
    assert (paid["status"], paid["amount"], paid["currency"]) == ("succeeded", 150_000, "THB")
    assert (paid["description"], paid["metadata"], paid["expires_at"]) == ("Two tickets", {"a": 1}, None)
    assert paid["card"] == {"last4": SandboxCharge.objects.get().last4, "brand": brand}
    assert card_shop.get(f"{PATH}/{paid['payment_id']}").json() == paid | {"unmatched_money": None}


def test_successful_card_payment_stores_history_event_balance_and_charge(card_shop: Shop) -> None:
    paid = card_shop.post(PATH, request(reference="A-1")).json()
    shown = card_shop.payment(paid["payment_id"])
    assert (shown["status"], shown["qr_code_id"], shown["reference"]) == ("succeeded", None, "A-1")
    assert shown["completed_at"] is not None
    assert rows_of(card_shop) == [("payment", "succeeded", 150_000)]
    assert events() == ["payment.succeeded"]
    assert ledger.balance(card_shop.merchant.id).unsettled == 144_142
    charge = CardCharge.objects.get()
    actual = (charge.acquirer, charge.charge_id, charge.state)
    assert actual == ("sandbox", SandboxCharge.objects.get().id, "completed")


@pytest.mark.parametrize("path", FORMS)
@pytest.mark.parametrize(("token", "code"), DECLINES.items())
def test_declined_card_is_402_with_the_payment_id(card_shop: Shop, path: str, token: str, code: str) -> None:
    refused = card_shop.post(path, request(token))
    assert error_of(refused) == (402, code, "payment_error")
    check_error(refused.json(), code)
    payment_id = refused.json()["error"]["payment_id"]
    failed = card_shop.get(f"{PATH}/{payment_id}").json()
    assert (failed["status"], failed["failure_code"], failed["card"]["brand"]) == ("failed", code, "visa")
    assert rows_of(card_shop) == [("failed", "failed", 150_000)]
    assert events() == ["payment.failed"]
    assert ledger.balance(card_shop.merchant.id).available == 0


@pytest.mark.parametrize("token", ["tok_test_visa", *DECLINES])
def test_repeated_card_request_gets_the_same_response_and_charges_nothing(
    card_shop: Shop, token: str
) -> None:
    first = card_shop.post(PATH, request(token), key="order-1")
    again = card_shop.post("/Thai/v1/payments", request(token), key="order-1")
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert (Payment.objects.count(), SandboxCharge.objects.count()) == (1, 1)


def test_card_request_with_another_body_under_the_idempotency_key_is_refused(card_shop: Shop) -> None:
    card_shop.post(PATH, request(), key="order-1")
    refused = card_shop.post(PATH, request(amount=200_000), key="order-1")
    assert error_of(refused) == (409, "idempotency_key_reused", "idempotency_error")
    assert SandboxCharge.objects.count() == 1


def test_card_test_token_can_be_used_again(card_shop: Shop) -> None:
    ids = {card_shop.post(PATH, request()).json()["payment_id"] for _ in range(2)}
    assert len(ids) == SandboxCharge.objects.count() == 2


@pytest.mark.parametrize("key", [None, "order-1"])
@pytest.mark.parametrize(
    ("token", "code"),
    [
        ("tok_test_used", "token_already_used"),
        ("tok_test_nothing", "invalid_token_id"),
        ("4242424242424242", "invalid_token_id"),
        ("4242-4242-4242-4242", "invalid_token_id"),
        ("4242 4242 4242 4242", "invalid_token_id"),
        ("", "invalid_token_id"),
        ("x" * 129, "invalid_token_id"),
        (4242424242424242, "invalid_token_id"),
        (None, "invalid_token_id"),
    ],
)
def test_invalid_card_token_is_a_400_and_stores_nothing(
    card_shop: Shop, token: Any, code: str, key: str | None
) -> None:
    before = count_rows()
    refused = card_shop.post(PATH, request(token), key=key)
    after = count_rows()
    assert error_of(refused) == (400, code, "validation_error")
    assert refused.json()["error"]["param"] == "token_id"
    if code == "token_already_used":
        check_error(refused.json(), "token_already_used")
    assert "4242" not in refused.content.decode()
    assert after == before
    assert card_shop.get(PATH).json()["total"] == 0
    assert card_shop.post(PATH, request(), key=key).status_code == 200


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("4242424242424242", True),
        ("5555-5555-5555-4444", True),
        ("3782_822463_10005", True),
        ("4222222222222", True),
        ("4242424242424241", False),  # a wrong check digit
        ("4242424242424243", False),
        ("424242424242", False),
        ("tok_4242424242424242", False),
    ],
)
def test_card_number_is_recognised_by_its_length_and_check_digit(text: str, expected: bool) -> None:
    assert looks_like_card_number(text) == expected


def test_card_number_is_never_stored_or_logged(card_shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    number = "4242424242424242"
    card_shop.post(PATH, request(number))
    card_shop.post(PATH, request(card_number=number, card={"number": number}))
    assert number not in caplog.text
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name FROM information_schema.tables"
            " WHERE table_schema = 'public' AND table_type = 'BASE TABLE'"
        )
        for (table,) in cursor.fetchall():
            cursor.execute(f"SELECT count(*) FROM {table} AS t WHERE t::text LIKE %s", [f"%{number}%"])
            assert cursor.fetchone() == (0,), table


def test_card_token_is_not_stored(card_shop: Shop) -> None:
    card_shop.post(PATH, request("tok_test_mastercard"), key="order-1")
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT t::text FROM payments_cardcharge t UNION ALL SELECT t::text FROM payments_payment t"
        )
        assert not [row for row in cursor.fetchall() if "tok_test" in row[0]]


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"amount": 99}, "invalid_amount"),
        ({"amount": 200_000_001}, "invalid_amount"),
        ({"amount": "150000"}, "invalid_amount"),
        ({"amount": True}, "invalid_amount"),
        ({"currency": "USD"}, "invalid_currency"),
        ({"description": ""}, "invalid_description"),
        ({"description": "x" * 256}, "invalid_description"),
        ({"reference": "x" * 36}, "invalid_reference"),
        ({"metadata": []}, "invalid_metadata"),
    ],
)
def test_invalid_card_request_is_refused_before_the_acquirer_call(
    card_shop: Shop, changes: dict[str, Any], code: str
) -> None:
    assert error_of(card_shop.post(PATH, request(**changes))) == (400, code, "validation_error")
    assert not Payment.objects.exists() and not SandboxCharge.objects.exists()


def test_timeout_of_the_acquirer_leaves_the_payment_pending(card_shop: Shop) -> None:
    with short_call_timeout():
        answer = card_shop.post(PATH, request("tok_test_timeout"), key="order-1")
    pending = answer.json()
    assert (answer.status_code, pending["status"], pending["card"]) == (200, "pending", None)
    assert (events(), rows_of(card_shop)) == (["payment.pending"], [])
    assert card_shop.post(PATH, request("tok_test_timeout"), key="order-1").content == answer.content
    assert inquire() == 1
    paid = card_shop.get(f"{PATH}/{pending['payment_id']}").json()
    assert (paid["status"], paid["card"]) == ("succeeded", {"last4": "4242", "brand": "visa"})
    assert events() == ["payment.pending", "payment.succeeded"]
    assert rows_of(card_shop) == [("payment", "succeeded", 150_000)]
    assert SandboxCharge.objects.count() == 1
    assert inquire() == 0


@pytest.mark.django_db(transaction=True)
def test_unreachable_acquirer_fails_the_payment(acquirer: AcquirerServer, settings: Settings) -> None:
    settings.SANDBOX_ACQUIRER_URL = "http://127.0.0.1:1"
    card_shop = open_shop("Somtam House")
    refused = card_shop.post(PATH, request())
    assert error_of(refused) == (402, "processing_error", "payment_error")
    check_error(refused.json(), "processing_error")
    assert rows_of(card_shop) == [("failed", "failed", 150_000)]


@pytest.mark.django_db
@pytest.mark.parametrize("mode", ["test", "live"])
def test_merchant_without_acquirer_is_refused(settings: Settings, mode: str) -> None:
    settings.SANDBOX_ACQUIRER_URL = settings.OMISE_SECRET_KEY = ""
    refused = open_shop("Somtam House", mode).post(PATH, request())
    assert error_of(refused) == (400, "bank_not_configured", "validation_error")
    assert not Payment.objects.exists()
