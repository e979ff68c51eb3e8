"""The rate limit of a key: exact with many threads, shown in headers, off without Redis."""

import time
from collections import Counter

import pytest
from pytest_django import Settings

from merchants import key_rate_limit
from tests.concurrency import run_concurrently
from tests.conftest import Shop, new_client, open_shop
from tests.stack import wait_until

INTERVAL = 1000  # seconds


@pytest.fixture
def rare(settings: Settings) -> None:
    """Use a rate so slow that no request becomes available again during a test."""
    settings.RATE_LIMIT, settings.RATE_LIMIT_BURST = 1 / INTERVAL, 3


@pytest.mark.usefixtures("rare")
def test_requests_beyond_burst_get_retry_after(shop: Shop) -> None:
    began = time.monotonic()
    answers = [shop.get("/v1/payments") for _ in range(5)]
    passed = time.monotonic() - began
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429, 429]
    assert [answer.headers["RateLimit-Remaining"] for answer in answers] == ["2", "1", "0", "0", "0"]
    refused = answers[-1]
    assert (refused.json()["error"]["code"], refused.json()["error"]["type"]) == (
        "rate_limit_exceeded",
        "rate_limit_error",
    )
    assert refused.headers["RateLimit-Limit"] == "3"
    assert INTERVAL - passed <= int(refused.headers["Retry-After"]) <= INTERVAL
    assert 3 * INTERVAL - passed <= int(refused.headers["RateLimit-Reset"]) <= 3 * INTERVAL


@pytest.mark.usefixtures("rare")
def test_retry_after_of_a_short_wait_is_rounded_up_in_milliseconds() -> None:
    rooms = [key_rate_limit.take("key") for _ in range(4)]
    assert [room is not None and room.allowed for room in rooms] == [True, True, True, False]
    assert rooms[-1] is not None
    assert 0 < rooms[-1].wait_ms <= 1000 * INTERVAL


@pytest.mark.slow
def test_rate_limit_recovers_with_time(settings: Settings) -> None:
    settings.RATE_LIMIT, settings.RATE_LIMIT_BURST = 5, 1

    def is_allowed() -> bool:
        room = key_rate_limit.take("key")
        return room is not None and room.allowed

    while is_allowed():
        pass
    wait_until(is_allowed, 60)


@pytest.mark.usefixtures("rare")
def test_rate_limit_is_separate_for_each_api_key(shop: Shop, other_shop: Shop) -> None:
    asked = (shop, shop, shop, shop, other_shop, shop)
    assert [each.get("/v1/payments").status_code for each in asked] == [200, 200, 200, 429, 200, 429]


def test_rate_limit_of_zero_disables_the_limit(shop: Shop, settings: Settings) -> None:
    settings.RATE_LIMIT = 0
    assert "RateLimit-Limit" not in shop.get("/v1/payments").headers


@pytest.mark.django_db(transaction=True)
@pytest.mark.slow
def test_concurrent_requests_do_not_pass_the_rate_limit(settings: Settings) -> None:
    settings.RATE_LIMIT, settings.RATE_LIMIT_BURST = 1 / INTERVAL, 20
    shop = open_shop("Race")

    def ask() -> int:
        own = Shop(shop.merchant, shop.secret_key, new_client())
        return int(own.get("/v1/payments").status_code)

    counts = Counter(status for _ in range(4) for status in run_concurrently(*[ask] * 10))
    assert counts == {200: 20, 429: 20}


@pytest.mark.usefixtures("rare")
def test_requests_are_not_rate_limited_without_redis(shop: Shop, settings: Settings) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    assert [shop.get("/v1/payments").status_code for _ in range(4)] == [200] * 4
