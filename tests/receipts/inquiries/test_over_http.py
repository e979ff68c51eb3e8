"""The sandbox bank behind its own door, over real HTTP."""

import time
from typing import Any

import pytest

from payments.models import Payment
from receipts.models import InquiryAnswer, Receipt
from tests.conftest import Shop
from tests.receipts.inquiries.cast import answers, sweep

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("books_are_right"),
]


@pytest.fixture(autouse=True)
def service(live_server: Any, settings: Any) -> None:
    """The service and the bank, which live at one address."""
    settings.BASE_URL = live_server.url


def pay(shop: Shop, code: dict[str, Any], scenario: str) -> None:
    body = {"qr_data": code["qr_data"], "scenario": scenario}
    assert shop.post("/sandbox/v1/payments", body).status_code == 200


def test_what_was_paid_and_never_told_is_found(shop: Shop) -> None:
    code = shop.qr_code()
    pay(shop, code, "callback_lost")
    began = time.monotonic()
    assert sweep() == 1
    took_ms = 1000 * (time.monotonic() - began)
    receipt = Receipt.objects.get()
    assert (receipt.source, receipt.outcome, Payment.objects.get().status) == (
        "inquiry",
        "applied",
        "succeeded",
    )
    assert InquiryAnswer.objects.get().took_ms <= took_ms


def test_what_was_not_paid_stays_pending(shop: Shop) -> None:
    shop.qr_code()
    assert sweep() == 1
    assert (answers(), Payment.objects.get().status) == (["nothing"], "pending")


def test_a_bank_that_is_down_is_asked_when_it_is_back(shop: Shop, settings: Any) -> None:
    code, back_at = shop.qr_code(), settings.BASE_URL
    pay(shop, code, "callback_lost")
    settings.BASE_URL = "http://127.0.0.1:1"
    sweep()
    settings.BASE_URL = back_at
    sweep(20)
    assert (answers(), Payment.objects.get().status) == (["no_answer", "found"], "succeeded")
