"""Create and read QR codes over the API."""

import json
from typing import Any
from urllib.parse import urlencode

import pytest

from core.thai import thaiqr
from payments.models import Payment
from qrcodes.models import QrCode
from tests.conftest import Shop
from webhooks.models import Event

REQUIRED = {
    "qr_code_id", "qr_data", "qr_image_url", "payment_page_url", "amount", "amount_display", "currency",
    "expires_at", "payment_id", "status",
}  # fmt: skip


def test_qr_code_object_has_only_given_fields(shop: Shop) -> None:
    assert set(shop.qr_code()) == REQUIRED
    given: dict[str, Any] = {
        "reference": "INV-1/ก",
        "client_name": "สมชาย ใจดี",
        "client_bank_name": "SCB",
        "client_bank_account": "1234567890",
        "metadata": {"b": 1, "a": [1.5, None, {"ก": "x"}], "": True},
    }
    full = shop.qr_code(**given)
    assert set(full) == REQUIRED | set(given)
    assert {name: full[name] for name in given} == given
    assert list(full["metadata"]) == ["b", "a", ""]
    assert shop.get(f"/v1/qr-codes/{full['qr_code_id']}").json() == full


def test_qr_payload_has_amount_biller_id_and_reference(shop: Shop) -> None:
    code = shop.qr_code(amount=150_000)
    payload = thaiqr.parse(code["qr_data"])
    assert (payload.amount, payload.biller_id) == (150_000, shop.merchant.biller_id)
    assert payload.reference1 == QrCode.objects.get().reference1
    assert code["qr_image_url"].endswith(f"/Thai/qr-codes/{code['qr_code_id']}/image")


def test_qr_payload_has_second_and_third_reference_of_the_merchant(shop: Shop) -> None:
    shop.merchant.reference2, shop.merchant.reference3 = "BRANCH1", "SCB"
    shop.merchant.save()
    payload = thaiqr.parse(shop.qr_code()["qr_data"])
    assert (payload.reference2, payload.reference3) == ("BRANCH1", "SCB")


@pytest.mark.parametrize("amount", [100, 101, 200_000_000])
def test_amounts_from_1_to_2000000_baht_are_accepted(shop: Shop, amount: int) -> None:
    assert shop.qr_code(amount=amount)["amount"] == amount


@pytest.mark.parametrize("amount", [99, 200_000_001, 0, -1, "100", 100.5, True, None, [100], {}])
def test_amount_outside_the_limits_is_refused_with_the_specified_message(shop: Shop, amount: Any) -> None:
    refused = shop.post("/Thai/v1/qr-codes", {"amount": amount, "currency": "THB"})
    assert refused.status_code == 400
    error = refused.json()["error"]
    assert error.pop("detail")
    assert error == {
        "code": "invalid_amount",
        "message": "Amount must be between 1 and 2000000 THB",
        "type": "validation_error",
        "param": "amount",
    }
    assert not Payment.objects.exists()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("currency", "USD"),
        ("currency", "thb"),
        ("reference", ""),
        ("reference", "x" * 36),
        ("reference", 17),
        ("expiry_minutes", 0),
        ("expiry_minutes", 1441),
        ("expiry_minutes", "15"),
        ("client_name", "x" * 141),
        ("client_bank_name", 1),
        ("client_bank_account", {}),
        ("metadata", []),
        ("metadata", {str(number): 1 for number in range(51)}),
        ("metadata", {"x": "y" * 8200}),
    ],
)
def test_invalid_qr_code_field_is_named_in_the_error(shop: Shop, field: str, value: Any) -> None:
    refused = shop.post("/v1/qr-codes", {"amount": 100, "currency": "THB"} | {field: value})
    error = refused.json()["error"]
    assert (refused.status_code, error["code"], error["param"]) == (400, f"invalid_{field}", field)
    assert not Payment.objects.exists()


def test_qr_code_creation_stores_payment_and_event(shop: Shop) -> None:
    code = shop.qr_code(reference="A-1", metadata={"x": 1})
    payment = shop.payment(code["payment_id"])
    assert (payment["qr_code_id"], payment["status"], payment["reference"]) == (
        code["qr_code_id"],
        "pending",
        "A-1",
    )
    assert payment["expires_at"] == code["expires_at"]
    event = json.loads(bytes(Event.objects.get(type="payment.pending").body))
    assert event["data"]["payment_id"] == code["payment_id"]
    assert event["data"]["metadata"] == {"x": 1}


def test_client_account_is_encrypted_in_the_database(shop: Shop) -> None:
    shop.qr_code(client_bank_account="1234567890")
    payment = Payment.objects.get()
    assert "1234567890" not in str(payment.client_bank_account_sealed)
    assert payment.client_bank_account == "1234567890"


def test_invisible_characters_of_a_request_are_dropped_and_searched_alike(shop: Shop) -> None:
    code = shop.qr_code(
        client_name="\ufeffสมชาย  \u200bใจดี\u0e4d\u0e32 ",
        client_bank_account=" 405-1-23456-7\u200b",
        reference=" A\u200b-1  x\ufeff",
    )
    assert code["client_name"] == "สมชาย ใจดี\u0e33"
    assert (code["client_bank_account"], code["reference"]) == ("405-1-23456-7", "A-1  x")
    for path in ("payments", "qr-codes"):
        for text in ("A-1  x", "\ufeffA-1  x "):
            found = shop.get(f"/v1/{path}?" + urlencode({"reference": text})).json()[path.replace("-", "_")]
            assert [each["payment_id"] for each in found] == [code["payment_id"]]


def test_reference_is_judged_without_invisible_characters(shop: Shop) -> None:
    assert shop.qr_code(reference=f" \u200b{'ก' * 35}\ufeff ")["reference"] == "ก" * 35


@pytest.mark.parametrize("field", ["client_name", "client_bank_account", "reference"])
def test_field_of_invisible_characters_alone_is_empty(shop: Shop, field: str) -> None:
    error = shop.post("/v1/qr-codes", {"amount": 100, "currency": "THB", field: " \u200b"}).json()["error"]
    assert (error["code"], error["param"]) == (f"invalid_{field}", field)


@pytest.mark.parametrize("qr_code_id", ["qr_unknown", "qr_000000000000000000000000000", "%00"])
def test_unknown_qr_code_is_not_found(shop: Shop, qr_code_id: str) -> None:
    answer = shop.get(f"/Thai/v1/qr-codes/{qr_code_id}")
    assert (answer.status_code, answer.json()["error"]["code"]) == (404, "qr_code_not_found")


@pytest.mark.slow
def test_payment_references_are_unique(shop: Shop) -> None:
    for _ in range(50):
        shop.qr_code()
    assert QrCode.objects.values("reference1").distinct().count() == 50
