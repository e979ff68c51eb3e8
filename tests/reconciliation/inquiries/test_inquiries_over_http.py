"""Inquiries to the sandbox bank over HTTP."""

import time
from typing import Any

import pytest

from payments.models import Payment
from reconciliation.models import BankTransaction, InquiryAnswer
from tests.conftest import Shop
from tests.reconciliation.inquiries.builders import outcomes, sweep

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("audit_is_clean"),
]


@pytest.fixture(autouse=True)
def service(live_server: Any, settings: Any) -> None:
    settings.BASE_URL = live_server.url


def pay(shop: Shop, code: dict[str, Any], scenario: str) -> None:
    body = {"qr_data": code["qr_data"], "scenario": scenario}
    assert shop.post("/sandbox/v1/payments", body).status_code == 200


def test_sandbox_inquiry_over_http_finds_paid_code(shop: Shop) -> None:
    code = shop.qr_code()
    pay(shop, code, "callback_lost")
    began = time.monotonic()
    assert sweep() == 1
    duration_ms = 1000 * (time.monotonic() - began)
    bank_transaction = BankTransaction.objects.get()
    actual = (bank_transaction.source, bank_transaction.match_result, Payment.objects.get().status)
    assert actual == ("inquiry", "applied", "succeeded")
    assert InquiryAnswer.objects.get().duration_ms <= duration_ms


def test_sandbox_inquiry_over_http_leaves_unpaid_code_pending(shop: Shop) -> None:
    shop.qr_code()
    assert sweep() == 1
    assert (outcomes(), Payment.objects.get().status) == (["nothing"], "pending")


def test_inquiry_succeeds_after_bank_downtime(shop: Shop, settings: Any) -> None:
    code, back_at = shop.qr_code(), settings.BASE_URL
    pay(shop, code, "callback_lost")
    settings.BASE_URL = "http://127.0.0.1:1"
    sweep()
    settings.BASE_URL = back_at
    sweep(20)
    assert (outcomes(), Payment.objects.get().status) == (["no_answer", "found"], "succeeded")
