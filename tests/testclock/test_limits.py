"""Whose time can be advanced, how far, and how often."""

from typing import Any

import pytest
from django.db import IntegrityError, transaction
from pytest_django import Settings

from core import clock
from core.http.rate_limits import RateLimit
from merchants.models import Merchant
from payments.models import Payment
from testclock import services, views
from testclock.models import MerchantClock
from tests.concurrency import run_concurrently
from tests.conftest import Shop, open_shop
from tests.error_messages import check_error

PATH = "/sandbox/v1/clock"
DAYS_90 = 90 * 86_400


def error_of(answer: Any) -> tuple[int, str, str | None]:
    error = answer.json()["error"]
    return answer.status_code, error["code"], error.get("param")


@pytest.mark.slow
def test_clock_counts_all_advances_until_its_reset(shop: Shop) -> None:
    assert shop.get(PATH).json() == {"advanced_seconds": 0, "advanced_at": None}
    shop.post(PATH, {"advance_seconds": 30})
    shop.post(PATH, {"advance_minutes": 2})
    read = shop.get(PATH).json()
    assert (read["advanced_seconds"], read["advanced_at"] <= clock.iso(clock.now())) == (150, True)
    assert shop.delete(PATH).status_code == 204
    assert shop.get(PATH).json()["advanced_seconds"] == 0


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({}, "invalid_advance_seconds"),
        ({"advance_seconds": 1, "advance_minutes": 1}, "invalid_advance_seconds"),
        ({"advance_seconds": 0}, "invalid_advance_seconds"),
        ({"advance_seconds": -60}, "invalid_advance_seconds"),
        ({"advance_seconds": "60"}, "invalid_advance_seconds"),
        ({"advance_seconds": DAYS_90 + 1}, "invalid_advance_seconds"),
        ({"advance_minutes": 0}, "invalid_advance_minutes"),
        ({"advance_minutes": DAYS_90 // 60 + 1}, "invalid_advance_minutes"),
    ],
)
def test_wrong_span_is_refused_and_changes_nothing(shop: Shop, body: Any, code: str) -> None:
    shop.qr_code()
    before = Payment.objects.values().get()
    assert error_of(shop.post(PATH, body)) == (400, code, code.removeprefix("invalid_"))
    assert Payment.objects.values().get() == before


@pytest.mark.slow
def test_clock_goes_90_days_forward_in_all(shop: Shop) -> None:
    assert shop.post(PATH, {"advance_seconds": DAYS_90 - 10}).status_code == 200
    refused = shop.post(PATH, {"advance_seconds": 11})
    assert error_of(refused) == (400, "clock_limit_reached", None)
    check_error(refused.json(), "clock_limit_reached", seconds_left=10)
    assert shop.post(PATH, {"advance_seconds": 10}).status_code == 200
    shop.delete(PATH)
    assert shop.post(PATH, {"advance_seconds": 11}).status_code == 200


@pytest.mark.slow
def test_repeated_request_advances_once(shop: Shop) -> None:
    first, again = (shop.post(PATH, {"advance_minutes": 1}, key="one") for _ in range(2))
    assert (first.content, again["Idempotent-Replayed"]) == (again.content, "true")
    assert shop.get(PATH).json()["advanced_seconds"] == 60


@pytest.mark.slow
def test_advance_of_too_many_rows_is_refused(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "MAX_ROWS", 2)
    for _ in range(3):
        shop.qr_code()
    refused = shop.post(PATH, {"advance_minutes": 16})
    assert error_of(refused) == (400, "clock_not_advanceable", None)
    check_error(refused.json(), "clock_not_advanceable", limit=2)
    assert not MerchantClock.objects.filter(advanced_seconds__gt=0)
    assert Payment.objects.filter(status="pending").count() == 3
    shop.post(f"/v1/qr-codes/{Payment.objects.first().qr_code_id}/expire")  # type: ignore[union-attr]
    assert shop.post(PATH, {"advance_minutes": 16}).json()["moved"]["expired"] == 2


@pytest.mark.slow
def test_advances_of_one_merchant_are_limited(
    shop: Shop, other_shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(views, "RATE", RateLimit(per_second=0.01, burst=2))
    answers = [shop.post(PATH, {"advance_seconds": 1}) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert error_of(answers[2]) == (429, "rate_limit_exceeded", None)
    assert int(answers[2]["Retry-After"]) >= 1
    assert other_shop.post(PATH, {"advance_seconds": 1}).status_code == 200


def test_live_key_is_refused(db: None) -> None:
    live = open_shop("Real Shop", mode="live")
    answers = [live.get(PATH), live.post(PATH, {"advance_minutes": 1}), live.delete(PATH)]
    assert {error_of(answer) for answer in answers} == {(403, "test_mode_only", None)}


def test_deployment_without_sandbox_bank_has_no_clock(shop: Shop, settings: Settings) -> None:
    settings.SANDBOX_BANK_SECRET = ""
    assert shop.post(PATH, {"advance_minutes": 1}).status_code == 404


def test_database_refuses_the_clock_of_a_live_merchant(shop: Shop) -> None:
    shop.post(PATH, {"advance_seconds": 1})
    Merchant.objects.update(mode="live", bank="scb")
    with pytest.raises(IntegrityError, match="only test merchants"), transaction.atomic():
        services.advance(merchant=shop.merchant, seconds=60, now=clock.now())
    MerchantClock.objects.all().delete()
    with pytest.raises(IntegrityError, match="only test merchants"), transaction.atomic():
        services.advance(merchant=shop.merchant, seconds=60, now=clock.now())


@pytest.mark.parametrize("seconds", [-1, DAYS_90 + 1])
def test_database_refuses_a_count_outside_of_the_limits(shop: Shop, seconds: int) -> None:
    with pytest.raises(IntegrityError, match="merchantclock_within_limits"), transaction.atomic():
        MerchantClock.objects.create(merchant=shop.merchant, advanced_seconds=seconds)


@pytest.mark.django_db(transaction=True)
@pytest.mark.slow
def test_advances_at_once_take_turns() -> None:
    shop = open_shop("Somtam House")
    code = shop.qr_code(expiry_minutes=60)
    before = Payment.objects.get().expires_at
    answers = run_concurrently(*[lambda: shop.post(PATH, {"advance_seconds": 60})] * 4)
    assert [answer.status_code for answer in answers] == [200] * 4
    payment = Payment.objects.get(pk=code["payment_id"])
    assert before is not None and payment.expires_at is not None
    assert (before - payment.expires_at).total_seconds() == 240
    assert shop.get(PATH).json()["advanced_seconds"] == 240
