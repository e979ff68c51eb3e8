"""A merchant has at most WEBHOOKS_PER_MERCHANT webhooks; deleted ones do not count."""

from typing import Any

import pytest
from pytest_django import Settings

from config.settings import WEBHOOKS_PER_MERCHANT
from tests.concurrency import run_concurrently
from tests.conftest import Shop, open_shop
from tests.error_messages import check_error
from tests.webhook_receiver import Receiver
from tests.webhooks.api_calls import error_code, webhook_path
from tests.webhooks.builders import NOW, PAYMENT_SUCCEEDED, make_endpoint
from webhooks.models import Endpoint, EndpointAction

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loopback")]

PATH = "/Thai/v1/webhooks"
LIMIT = 3


@pytest.fixture(autouse=True)
def small_limit(settings: Settings) -> None:
    settings.WEBHOOKS_PER_MERCHANT = LIMIT
    settings.WEBHOOK_PROBE = "off"
    settings.RATE_LIMIT = 0


def create(shop: Shop, url: str = "https://shop.example/hook", **options: Any) -> Any:
    return shop.post(PATH, {"url": url, "events": [PAYMENT_SUCCEEDED]}, **options)


def test_webhook_over_the_limit_is_refused_and_nothing_is_stored(shop: Shop) -> None:
    assert [create(shop).status_code for _ in range(LIMIT)] == [200] * LIMIT
    answer = create(shop)
    assert error_code(answer) == (422, "too_many_webhooks")
    assert answer.json()["error"]["type"] == "validation_error"
    check_error(answer.json(), "too_many_webhooks", limit=LIMIT)
    assert Endpoint.objects.count() == EndpointAction.objects.count() == LIMIT


def test_default_limit_is_twenty_webhooks(shop: Shop, settings: Settings) -> None:
    settings.WEBHOOKS_PER_MERCHANT = WEBHOOKS_PER_MERCHANT
    for _ in range(19):
        make_endpoint(shop)
    assert [create(shop).status_code for _ in range(2)] == [200, 422]


def test_deleted_webhook_does_not_count_towards_the_limit(shop: Shop) -> None:
    endpoints = [make_endpoint(shop) for _ in range(LIMIT)]
    make_endpoint(shop, deleted_at=NOW)
    assert create(shop).status_code == 422
    assert shop.delete(webhook_path(endpoints[0])).status_code == 204
    assert create(shop).status_code == 200


def test_disabled_webhook_counts_towards_the_limit(shop: Shop) -> None:
    for _ in range(LIMIT):
        make_endpoint(shop, status="disabled", disabled_reason="merchant")
    assert create(shop).status_code == 422


def test_webhook_limit_is_separate_for_each_merchant(shop: Shop, other_shop: Shop) -> None:
    for _ in range(LIMIT):
        make_endpoint(shop)
    assert create(other_shop).status_code == 200


def test_merchant_at_the_limit_gets_no_probe(shop: Shop, receiver: Receiver, settings: Settings) -> None:
    settings.WEBHOOK_PROBE = "reachable"
    for _ in range(LIMIT):
        make_endpoint(shop)
    assert create(shop, receiver.url()).status_code == 422
    assert receiver.requests == []


def test_refusal_for_too_many_webhooks_is_not_stored_under_the_idempotency_key(shop: Shop) -> None:
    endpoints = [make_endpoint(shop) for _ in range(LIMIT)]
    assert create(shop, key="once").status_code == 422
    shop.delete(webhook_path(endpoints[0]))
    assert create(shop, key="once").status_code == 200
    assert create(shop, key="once").headers["Idempotent-Replayed"] == "true"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("has_key", [True, False])
@pytest.mark.slow
def test_concurrent_creations_do_not_pass_the_webhook_limit(
    has_key: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Without the limit of one probe per merchant and process, as if each request had its own process.
    monkeypatch.setattr("webhooks.probes.probe", lambda endpoint, *, now: None)
    shop = open_shop("Somtam House")
    for _ in range(LIMIT - 1):
        make_endpoint(shop)

    def one(number: int) -> int:
        return int(create(shop, key=f"key-{number}" if has_key else None).status_code)

    codes = run_concurrently(*[lambda number=number: one(number) for number in range(6)])
    assert sorted(codes) == [200, 422, 422, 422, 422, 422]
    assert Endpoint.objects.of(shop.merchant).count() == LIMIT
