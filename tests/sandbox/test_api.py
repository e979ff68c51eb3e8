"""The API of the sandbox bank: who may use it, and orders to pay."""

import json
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlencode

import pytest
import time_machine
from django.test import Client

from core import clock
from core.thai import thaiqr
from sandbox.models import SandboxCallback, SandboxOrder, SandboxPayment
from tests.conftest import Shop, open_shop
from tests.error_messages import check_error
from tests.sandbox.conftest import BILLER, REFERENCE, error_of, payload, send_signed, sign
from tests.thai_codes import altered

URL, STATEMENT_URL, PAGE_URL = "/sandbox/v1/payments", "/sandbox/v1/statements/2026-11-21", "/sandbox/bank"
PHONE = "00020101021129370016A0000006770101110113006681234567853037645802TH6304823E"
YEARS_AWAY = "2199-01-01T00:00:00Z"
ORDER = json.dumps(
    {
        "reference": "wd_1",
        "type": "payout",
        "amount": "1500.00",
        "currency": "THB",
        "bank_code": "014",
        "account": "4051234567",
        "account_name": "MALEE SRISUK",
    }
).encode()
WINDOW = {"since": "2026-11-20T00:00:00Z", "until": "2026-11-23T00:00:00Z"}
CODE = {"biller_id": BILLER, "reference1": REFERENCE}
SIGNED_REQUESTS = {
    "order": ("POST", "/sandbox/bank/v1/orders", ORDER),
    "order inquiry": ("GET", "/sandbox/bank/v1/orders/wd_1", b""),
    "transactions": ("GET", f"/sandbox/bank/v1/transactions?{urlencode(CODE | WINDOW)}", b""),
    "slip": ("GET", "/sandbox/bank/v1/slips?sending_bank=014&reference=A1", b""),
    "statement": ("GET", f"/sandbox/bank/statement?biller_id={BILLER}&date=2026-11-21", b""),
}
INVALID_SIGNATURES: dict[str, Callable[[str, str, bytes], str]] = {
    "none": lambda method, path, body: " ",
    "malformed": lambda method, path, body: "sesame",
    "another body": lambda method, path, body: sign(method, path, body + b"{}"),
    "another method": lambda method, path, body: sign("PUT", path, body),
    "another path": lambda method, path, body: sign(method, f"{path}0", body),
    "another secret": lambda method, path, body: sign(method, path, body, secret="guessed"),
    "too old": lambda method, path, body: sign(method, path, body, seconds=-301),
    "too new": lambda method, path, body: sign(method, path, body, seconds=301),
}


def order(**fields: Any) -> dict[str, Any]:
    """The body of an order to pay."""
    return {"qr_data": payload()} | fields


@pytest.mark.django_db
@pytest.mark.parametrize("name", SIGNED_REQUESTS)
@pytest.mark.parametrize("fault", INVALID_SIGNATURES)
def test_sandbox_bank_api_refuses_invalid_signature(name: str, fault: str) -> None:
    request = SIGNED_REQUESTS[name]
    with time_machine.travel(clock.now(), tick=False):
        response = send_signed(*request, signature=INVALID_SIGNATURES[fault](*request))
    assert error_of(response) == (401, "invalid_order_signature", None)
    check_error(response.json(), "invalid_order_signature")
    assert not SandboxOrder.objects.exists()


@pytest.mark.django_db
@pytest.mark.parametrize("name", SIGNED_REQUESTS)
def test_bank_api_is_404_without_sandbox_bank(name: str, settings: Any) -> None:
    request = SIGNED_REQUESTS[name]
    signature = sign(*request)
    settings.SANDBOX_BANK_SECRET = ""
    assert error_of(send_signed(*request, signature=signature)) == (404, "not_found", None)


def test_merchant_api_and_page_are_404_without_sandbox_bank(shop: Shop, settings: Any) -> None:
    settings.SANDBOX_BANK_SECRET = ""
    for response in (shop.post(URL, order()), shop.get(STATEMENT_URL)):
        assert error_of(response) == (404, "not_found", None)
    assert shop.http.get(PAGE_URL).status_code == shop.http.post(PAGE_URL).status_code == 404


def test_live_key_is_refused_by_the_sandbox_api(db: None) -> None:
    live = open_shop("Real Shop", mode="live")
    for response in (live.post(URL, order()), live.get(STATEMENT_URL)):
        assert error_of(response) == (403, "test_mode_only", None)
    assert not SandboxPayment.objects.exists()


def test_sandbox_api_requires_an_api_key(db: None, client: Client) -> None:
    assert client.post(URL, order(), content_type="application/json").status_code == 401
    assert client.get(STATEMENT_URL).status_code == 401


def test_payment_order_returns_bank_transaction_id(shop: Shop) -> None:
    response = shop.post(URL, order())
    payment = SandboxPayment.objects.get()
    assert response.status_code == 200
    assert response.json() == {"bank_transaction_id": payment.id, "scenario": "paid", "accepted": True}


def test_paid_at_and_report_at_are_accepted(shop: Shop) -> None:
    with time_machine.travel(datetime(2026, 11, 21, 3, 0, tzinfo=UTC)):
        shop.post(URL, order(paid_at=clock.iso(clock.now()), report_at="2026-11-21T10:00:00+07:00"))
    assert clock.iso(SandboxCallback.objects.get().due_at) == "2026-11-21T03:00:00.000Z"


def test_code_of_the_service_can_be_paid(shop: Shop) -> None:
    shop.post(URL, {"qr_data": shop.qr_code()["qr_data"]})
    assert SandboxPayment.objects.get().biller_id == shop.merchant.biller_id


def test_repeated_idempotency_key_pays_once(shop: Shop) -> None:
    first, second = (shop.post(URL, order(), key="order-1") for _ in range(2))
    assert first.json() == second.json()
    assert SandboxPayment.objects.count() == SandboxCallback.objects.count() == 1


@pytest.mark.parametrize(
    "qr_data",
    [
        "",
        "not a code",
        payload()[:-1] + "X",
        PHONE,
        altered(payload(), "54071500.00", ""),
        altered(payload(), thaiqr.BILL, "A000000677012006"),
        None,
        17,
    ],
)
def test_qr_data_without_bill_payment_and_amount_is_refused(shop: Shop, qr_data: Any) -> None:
    response = shop.post(URL, {"qr_data": qr_data})
    assert error_of(response) == (400, "invalid_qr_data", "qr_data")
    assert response.json()["error"]["type"] == "validation_error"


def test_missing_qr_data_is_refused(shop: Shop) -> None:
    assert shop.post(URL, {}).json()["error"]["code"] == "invalid_qr_data"


def test_control_characters_are_refused_even_with_valid_checksum(shop: Shop) -> None:
    qr_data = altered(payload(reference1="ABC"), "0203ABC", "0203A\x07C")
    assert shop.post(URL, {"qr_data": qr_data}).json()["error"]["code"] == "invalid_qr_data"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("scenario", value) for value in ("", "Paid", "lottery", 1, ["paid"])),
        *(
            (field, value)
            for field in ("paid_at", "report_at")
            for value in ("", "now", "2026-11-21", "2569-11-21T10:00:00Z", 1795230245, YEARS_AWAY)
        ),
        ("paid_at", "0001-01-01T00:00:00+07:00"),
        ("report_at", "9999-12-31T23:59:59-07:00"),
    ],
)
def test_malformed_sandbox_payment_field_is_named(shop: Shop, field: str, value: Any) -> None:
    assert error_of(shop.post(URL, order(**{field: value}))) == (400, f"invalid_{field}", field)
    assert not SandboxPayment.objects.exists()
