"""The warning about an amount that is 100 times a merchant's usual one, or a hundredth of it."""

from datetime import timedelta
from typing import Any

import pytest

from core import clock
from merchants.models import Merchant
from payments import usual_amounts
from tests.conftest import Shop

pytestmark = pytest.mark.slow

USUAL = 150_000


def ask(shop: Shop, amount: int, **changes: Any) -> Any:
    return shop.post("/Thai/v1/qr-codes", {"amount": amount, "currency": "THB"}, **changes)


def sell(shop: Shop, *amounts: int) -> None:
    for amount in amounts:
        shop.qr_code(amount=amount)
    usual_amounts.update(now=clock.now())


def usual_of(shop: Shop) -> int | None:
    return Merchant.objects.get(pk=shop.merchant.id).usual_amount


def test_usual_amount_is_the_median_of_at_least_20_payments(shop: Shop, other_shop: Shop) -> None:
    sell(shop, *[USUAL] * 15, *[200_000_000] * 4)
    assert usual_of(shop) is None
    sell(shop, 200_000_000)
    assert (usual_of(shop), usual_of(other_shop)) == (USUAL, None)


def test_usual_amount_follows_the_latest_payments(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(usual_amounts, "SAMPLE_SIZE", 20)
    sell(shop, *[USUAL] * 20)
    sell(shop, *[7_000] * 11)
    assert usual_of(shop) == 7_000


def test_merchants_without_recent_payments_keep_their_usual_amount(shop: Shop) -> None:
    sell(shop, *[USUAL] * 20)
    Merchant.objects.update(usual_amount=1)
    usual_amounts.update(now=clock.now() + usual_amounts.RECENT + timedelta(seconds=1))
    assert usual_of(shop) == 1


def test_update_visits_all_merchants_in_batches(shop: Shop, other_shop: Shop) -> None:
    for each in (shop, other_shop):
        for _ in range(20):
            each.qr_code(amount=USUAL)
    usual_amounts.update(now=clock.now(), batch=1)
    assert (usual_of(shop), usual_of(other_shop)) == (USUAL, USUAL)


@pytest.mark.parametrize(
    ("amount", "warning"),
    [
        (1_501, None),
        (1_500, "1500 satang is 15.00 THB, 100 times less than usual (1,500.00 THB)"),
        (100, "100 satang is 1.00 THB, 100 times less than usual (1,500.00 THB)"),
        (14_999_999, None),
        (15_000_000, "15000000 satang is 150,000.00 THB, 100 times more than usual (1,500.00 THB)"),
    ],
)
def test_amount_100_times_off_has_a_warning_header(shop: Shop, amount: int, warning: str | None) -> None:
    Merchant.objects.update(usual_amount=USUAL)
    answer = ask(shop, amount)
    assert (answer.status_code, answer.get("Warning-Amount")) == (200, warning)


def test_merchant_without_usual_amount_gets_no_warning(shop: Shop) -> None:
    assert "Warning-Amount" not in ask(shop, 200_000_000)


def test_card_payment_has_the_warning_and_a_stored_answer_has_not(card_shop: Shop) -> None:
    Merchant.objects.update(usual_amount=USUAL)
    body = {"token_id": "tok_test_visa", "amount": 1_500, "currency": "THB"}
    first, again = (card_shop.post("/v1/payments", body, key="one") for _ in range(2))
    assert (first.status_code, again.status_code) == (200, 200)
    assert ("Warning-Amount" in first, "Warning-Amount" in again) == (True, False)
