"""Payments by card token, over the API and with the sandbox's acquirer."""

from typing import Any

import pytest
from django.db import connection
from pytest_django import Settings

from ledger import services as ledger
from payments.models import CardCharge, Payment
from sandbox.acquirer_server import AcquirerServer
from sandbox.models import SandboxCharge
from tests.conftest import Shop, open_shop
from tests.payments.card_builders import PATH, error_of, events, inquire, request, rows_of, short_call_timeout
from tests.tables import count_rows

FORMS = ["/v1/payments", "/Thai/v1/payments"]
CARD_KEYS = {
    *("payment_id", "status", "amount", "currency", "description", "created_at", "updated_at", "card"),
    *("authorize_uri", "exceptions"),
    *("metadata", "amount_received", "amount_refunded", "failure_code", "expires_at"),
}
DECLINES = {
    "tok_test_insufficient_funds": "insufficient_funds",
    "tok_test_declined": "card_declined",
    "tok_test_expired": "expired_card",
}


@pytest.mark.parametrize("path", FORMS)
@pytest.mark.parametrize(
    ("token", "brand"), [("tok_test_visa", "visa"), ("tok_test_mastercard", "mastercard")]
)
def test_a_card_is_charged_and_the_payment_has_succeeded(
    till: Shop, path: str, token: str, brand: str
) -> None:
    answer = till.post(path, request(token, description="Two tickets", reference="A-1", metadata={"a": 1}))
    paid = answer.json()
    assert answer.status_code == 200, answer.content
    assert paid.keys() == CARD_KEYS
    assert (paid["status"], paid["amount"], paid["currency"]) == ("succeeded", 150_000, "THB")
    assert (paid["description"], paid["metadata"], paid["expires_at"]) == ("Two tickets", {"a": 1}, None)
    assert paid["card"] == {"last4": SandboxCharge.objects.get().last4, "brand": brand}
    assert till.get(f"{PATH}/{paid['payment_id']}").json() == paid


def test_what_a_charged_card_leaves_behind(till: Shop) -> None:
    paid = till.post(PATH, request(reference="A-1")).json()
    shown = till.payment(paid["payment_id"])
    assert (shown["status"], shown["qr_code_id"], shown["reference"]) == ("succeeded", None, "A-1")
    assert shown["completed_at"] is not None
    assert rows_of(till) == [("payment", "succeeded", 150_000)]
    assert events() == ["payment.succeeded"]
    assert ledger.balance(till.merchant.id).available == 150_000
    charge = CardCharge.objects.get()
    assert (charge.acquirer, charge.charge_id, charge.state) == (
        "sandbox",
        SandboxCharge.objects.get().id,
        "completed",
    )


@pytest.mark.parametrize("path", FORMS)
@pytest.mark.parametrize(("token", "code"), DECLINES.items())
def test_a_decline_is_a_402_that_names_the_failed_payment(
    till: Shop, path: str, token: str, code: str
) -> None:
    refused = till.post(path, request(token))
    assert error_of(refused) == (402, code, "payment_error")
    payment_id = refused.json()["error"]["payment_id"]
    failed = till.get(f"{PATH}/{payment_id}").json()
    assert (failed["status"], failed["failure_code"], failed["card"]["brand"]) == ("failed", code, "visa")
    assert rows_of(till) == [("failed", "failed", 150_000)]
    assert events() == ["payment.failed"]
    assert ledger.balance(till.merchant.id).available == 0


@pytest.mark.parametrize("token", ["tok_test_visa", *DECLINES])
def test_a_repeat_gets_the_same_answer_and_charges_nothing(till: Shop, token: str) -> None:
    first = till.post(PATH, request(token), key="order-1")
    again = till.post("/Thai/v1/payments", request(token), key="order-1")
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert again.headers["Idempotent-Replayed"] == "true"
    assert (Payment.objects.count(), SandboxCharge.objects.count()) == (1, 1)


def test_another_body_under_the_key_is_refused(till: Shop) -> None:
    till.post(PATH, request(), key="order-1")
    refused = till.post(PATH, request(amount=200_000), key="order-1")
    assert error_of(refused) == (409, "idempotency_key_reused", "idempotency_error")
    assert SandboxCharge.objects.count() == 1


def test_a_test_token_can_be_used_again(till: Shop) -> None:
    ids = {till.post(PATH, request()).json()["payment_id"] for _ in range(2)}
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
    till: Shop, token: Any, code: str, key: str | None
) -> None:
    before = count_rows()
    refused = till.post(PATH, request(token), key=key)
    after = count_rows()
    assert error_of(refused) == (400, code, "validation_error")
    assert refused.json()["error"]["param"] == "token_id"
    assert "4242" not in refused.content.decode()
    assert after == before
    assert till.get(PATH).json()["total"] == 0
    assert till.post(PATH, request(), key=key).status_code == 200


def test_card_number_is_never_stored_or_logged(till: Shop, caplog: pytest.LogCaptureFixture) -> None:
    number = "4242424242424242"
    till.post(PATH, request(number))
    till.post(PATH, request(card_number=number, card={"number": number}))
    assert number not in caplog.text
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name FROM information_schema.tables"
            " WHERE table_schema = 'public' AND table_type = 'BASE TABLE'"
        )
        for (table,) in cursor.fetchall():
            cursor.execute(f"SELECT count(*) FROM {table} AS t WHERE t::text LIKE %s", [f"%{number}%"])
            assert cursor.fetchone() == (0,), table


def test_the_token_is_not_stored(till: Shop) -> None:
    till.post(PATH, request("tok_test_mastercard"), key="order-1")
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
def test_a_field_at_fault_is_named_before_anybody_is_asked(
    till: Shop, changes: dict[str, Any], code: str
) -> None:
    assert error_of(till.post(PATH, request(**changes))) == (400, code, "validation_error")
    assert not Payment.objects.exists() and not SandboxCharge.objects.exists()


@pytest.mark.slow
def test_an_acquirer_that_does_not_answer_in_time_leaves_the_payment_pending(till: Shop) -> None:
    with short_call_timeout():
        answer = till.post(PATH, request("tok_test_timeout"), key="order-1")
    pending = answer.json()
    assert (answer.status_code, pending["status"], pending["card"]) == (200, "pending", None)
    assert (events(), rows_of(till)) == (["payment.pending"], [])
    assert till.post(PATH, request("tok_test_timeout"), key="order-1").content == answer.content
    assert inquire() == 1
    paid = till.get(f"{PATH}/{pending['payment_id']}").json()
    assert (paid["status"], paid["card"]) == ("succeeded", {"last4": "4242", "brand": "visa"})
    assert events() == ["payment.pending", "payment.succeeded"]
    assert rows_of(till) == [("payment", "succeeded", 150_000)]
    assert SandboxCharge.objects.count() == 1
    assert inquire() == 0


@pytest.mark.django_db(transaction=True)
def test_an_acquirer_that_cannot_be_reached_fails_the_payment(
    acquirer: AcquirerServer, settings: Settings
) -> None:
    settings.SANDBOX_ACQUIRER_URL = "http://127.0.0.1:1"
    till = open_shop("Somtam House")
    refused = till.post(PATH, request())
    assert error_of(refused) == (402, "processing_error", "payment_error")
    assert rows_of(till) == [("failed", "failed", 150_000)]


@pytest.mark.django_db
@pytest.mark.parametrize("mode", ["test", "live"])
def test_a_merchant_without_an_acquirer_is_told(settings: Settings, mode: str) -> None:
    settings.SANDBOX_ACQUIRER_URL = settings.OMISE_SECRET_KEY = ""
    refused = open_shop("Somtam House", mode).post(PATH, request())
    assert error_of(refused) == (400, "bank_not_configured", "validation_error")
    assert not Payment.objects.exists()
