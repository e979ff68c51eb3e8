"""The rate limit: exact under threads, told by headers, and no obstacle when Redis is away."""

import time
from collections import Counter

import pytest
from pytest_django import Settings

from core import redis
from merchants import limits
from tests.conftest import Shop, new_client, open_shop
from tests.threads import at_once


@pytest.fixture(autouse=True)
def patient_redis(monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine a call may take longer than a shop should wait for it."""
    monkeypatch.setattr(redis, "_breaker", redis.Breaker())
    monkeypatch.setattr(redis, "_own", redis._Own())
    monkeypatch.setattr(redis, "PATIENCE", 5.0)


def test_the_burst_is_admitted_then_refused_with_a_hint(shop: Shop, settings: Settings) -> None:
    settings.RATE_LIMIT, settings.RATE_LIMIT_BURST = 1, 3
    answers = [shop.get("/v1/payments") for _ in range(5)]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429, 429]
    assert [answer.headers["RateLimit-Remaining"] for answer in answers] == ["2", "1", "0", "0", "0"]
    refused = answers[-1]
    assert (refused.json()["error"]["code"], refused.json()["error"]["type"]) == (
        "rate_limit_exceeded",
        "rate_limit_error",
    )
    assert refused.headers["Retry-After"] == "1"
    assert (refused.headers["RateLimit-Limit"], refused.headers["RateLimit-Reset"]) == ("3", "3")


def test_room_comes_back_with_time(shop: Shop, settings: Settings) -> None:
    settings.RATE_LIMIT, settings.RATE_LIMIT_BURST = 50, 1
    first, second = limits.take("key"), limits.take("key")
    assert first is not None
    assert second is not None
    assert (first.allowed, second.allowed) == (True, False)
    assert 0 < second.wait_ms <= 20


def test_keys_do_not_share_their_room(shop: Shop, rival: Shop, settings: Settings) -> None:
    settings.RATE_LIMIT, settings.RATE_LIMIT_BURST = 1, 1
    assert [each.get("/v1/payments").status_code for each in (shop, rival, shop)] == [200, 200, 429]


def test_off_means_off(shop: Shop, settings: Settings) -> None:
    settings.RATE_LIMIT = 0
    assert "RateLimit-Limit" not in shop.get("/v1/payments").headers


@pytest.mark.django_db(transaction=True)
def test_threads_at_once_do_not_slip_through(settings: Settings) -> None:
    settings.RATE_LIMIT, settings.RATE_LIMIT_BURST = 1, 20
    shop = open_shop("Race")

    def ask() -> int:
        own = Shop(shop.merchant, shop.secret_key, new_client())
        return int(own.get("/v1/payments").status_code)

    started = time.monotonic()
    counts = Counter(status for _ in range(4) for status in at_once(*[ask] * 10))
    refilled = time.monotonic() - started
    assert counts[200] + counts[429] == 40
    assert 20 <= counts[200] <= 20 + refilled + 1


@pytest.fixture
def no_redis(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    settings.REDIS_URL = "redis://127.0.0.1:1/0"
    monkeypatch.setattr(redis, "_breaker", redis.Breaker())  # the pause after the failure ends with the test


def test_without_redis_requests_pass(shop: Shop, no_redis: None, settings: Settings) -> None:
    settings.RATE_LIMIT, settings.RATE_LIMIT_BURST = 1, 1
    assert [shop.get("/v1/payments").status_code for _ in range(3)] == [200, 200, 200]
