from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest
import time_machine

from core import clock, thaiqr
from sandbox.models import SandboxCallback, SandboxPayment
from tests.conftest import Shop, open_shop
from tests.sandbox.conftest import payload

Paying = Callable[..., dict[str, Any]]
URL = "/sandbox/v1/payments"


def test_payment_order_returns_bank_transaction_id(shop: Shop, payment_order: Paying) -> None:
    response = shop.post(URL, payment_order())
    payment = SandboxPayment.objects.get()
    assert response.status_code == 200
    assert response.json() == {"bank_transaction_id": payment.id, "scenario": "paid", "accepted": True}


def test_paid_at_and_report_at_are_accepted(shop: Shop, payment_order: Paying) -> None:
    with time_machine.travel(datetime(2026, 11, 21, 3, 0, tzinfo=UTC)):
        shop.post(URL, payment_order(paid_at=clock.iso(clock.now()), report_at="2026-11-21T10:00:00+07:00"))
    call = SandboxCallback.objects.get()
    assert clock.iso(call.due_at) == "2026-11-21T03:00:00.000Z"


def test_a_code_of_the_service_can_be_paid(shop: Shop) -> None:
    qr_code = shop.qr_code()
    shop.post(URL, {"qr_data": qr_code["qr_data"]})
    assert SandboxPayment.objects.get().biller_id == shop.merchant.biller_id


def test_the_same_key_pays_once(shop: Shop, payment_order: Paying) -> None:
    first, second = (shop.post(URL, payment_order(), key="order-1") for _ in range(2))
    assert first.json() == second.json()
    assert SandboxPayment.objects.count() == SandboxCallback.objects.count() == 1


def test_a_live_key_is_refused(db: None, payment_order: Paying) -> None:
    response = open_shop("Real Shop", mode="live").post(URL, payment_order())
    assert (response.status_code, response.json()["error"]["code"]) == (403, "test_mode_only")
    assert not SandboxPayment.objects.exists()


def test_a_key_is_needed(shop: Shop, payment_order: Paying) -> None:
    assert shop.http.post(URL, payment_order(), content_type="application/json").status_code == 401


def test_a_deployment_without_the_bank_has_no_such_path(
    shop: Shop, payment_order: Paying, settings: Any
) -> None:
    settings.SANDBOX_BANK_SECRET = ""
    assert shop.post(URL, payment_order()).status_code == 404


PHONE = "00020101021129370016A0000006770101110113006681234567853037645802TH6304823E"


@pytest.mark.parametrize(
    "qr_data",
    [
        "",
        "not a code",
        payload()[:-1] + "X",
        PHONE,
        payload(amount=None),
        payload(cross_border=True),
        None,
        17,
    ],
)
def test_qr_data_without_bill_payment_and_amount_is_refused(shop: Shop, qr_data: Any) -> None:
    error = shop.post(URL, {"qr_data": qr_data}).json()["error"]
    assert (error["code"], error["param"], error["type"]) == (
        "invalid_qr_data",
        "qr_data",
        "validation_error",
    )


def test_a_missing_code_is_refused(shop: Shop) -> None:
    assert shop.post(URL, {}).json()["error"]["code"] == "invalid_qr_data"


def test_control_characters_are_refused_even_under_a_right_checksum(shop: Shop) -> None:
    tags: list[thaiqr.Tag] = [
        (tag, tuple((part, text.replace("ABC", "A\x07C")) for part, text in value))
        if isinstance(value, tuple)
        else (tag, value)
        for tag, value in thaiqr.parse(payload(reference1="ABC")).tags
    ]
    assert shop.post(URL, {"qr_data": thaiqr.build(tags)}).json()["error"]["code"] == "invalid_qr_data"


YEARS_AWAY = "2199-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        *(("scenario", value) for value in ("", "Paid", "lottery", None, 1, ["paid"])),
        *(
            (field, value)
            for field in ("paid_at", "report_at")
            for value in ("", "now", "2026-11-21", "2026-11-21T10:00:00", 1795230245, None, YEARS_AWAY)
        ),
        ("paid_at", "0001-01-01T00:00:00+07:00"),
        ("report_at", "9999-12-31T23:59:59-07:00"),
    ],
)
def test_a_malformed_field_is_refused_by_its_name(
    shop: Shop, payment_order: Paying, field: str, value: Any
) -> None:
    response = shop.post(URL, payment_order(**{field: value}))
    assert response.status_code == 400
    assert response.json()["error"]["code"] == f"invalid_{field}"
    assert response.json()["error"]["param"] == field
    assert not SandboxPayment.objects.exists()
