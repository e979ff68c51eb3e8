"""The rate limit of a key: exact with many threads, shown in headers, off without Redis."""

import time
from collections import Counter

import pytest
from pytest_django import Settings

from core.http.rate_limits import RateLimit
from core.work import redis
from merchants import key_rate_limit
from merchants.key_rate_limit import KeyRateLimiter
from tests.concurrency import run_concurrently
from tests.conftest import Shop, new_client, open_shop
from tests.error_messages import check_error
from tests.stack import wait_until

INTERVAL = 1000  # seconds


@pytest.fixture(autouse=True)
def lasting_leases(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine must not lose requests that a process has taken."""
    monkeypatch.setattr(key_rate_limit, "LEASE_SECONDS", 3600.0)


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
    assert refused.json()["error"]["type"] == "rate_limit_error"
    check_error(refused.json(), "rate_limit_exceeded", retry_after=refused.headers["Retry-After"])
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
def test_clock_that_is_set_back_by_a_day_refuses_a_key_for_no_day() -> None:
    while (room := key_rate_limit.take("key")) and room.allowed:
        pass
    redis.try_call(lambda client: client.incrby("rate:key", 86_400 * 1_000_000))
    room = key_rate_limit.take("key")
    assert room is not None and room.wait_ms <= 1000 * INTERVAL


@pytest.mark.slow
def test_key_of_a_clock_that_is_set_back_is_allowed_again_after_the_wait(settings: Settings) -> None:
    settings.RATE_LIMIT, settings.RATE_LIMIT_BURST = 5, 1

    def is_allowed() -> bool:
        room = key_rate_limit.take("key")
        return room is not None and room.allowed

    assert is_allowed()
    redis.try_call(lambda client: client.incrby("rate:key", 86_400 * 1_000_000))
    redis.try_call(lambda client: client.expire("rate:key", 86_400))  # its end is of the same clock
    assert not is_allowed()
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


@pytest.mark.parametrize(
    ("burst", "processes", "size"),
    [(1, 2, 1), (39, 2, 1), (40, 2, 2), (200, 2, 6), (200, 1, 11), (10**6, 2, 50)],
)
def test_processes_of_a_machine_hold_at_most_five_percent_of_a_burst(
    burst: int, processes: int, size: int
) -> None:
    assert key_rate_limit.lease_size(burst, processes) == size
    assert (size - 1) * processes <= burst / 20


@pytest.mark.slow
def test_process_asks_redis_once_for_each_lease(redis_commands: list[str]) -> None:
    limiter, rate = KeyRateLimiter(), RateLimit(1 / INTERVAL, 760)
    rooms = [limiter.take("leased", rate, key_rate_limit.lease_size(760, 2)) for _ in range(760)]
    assert [room.remaining for room in rooms if room is not None] == list(range(759, -1, -1))
    assert len(redis_commands) == 760 / 20


@pytest.mark.slow
def test_slow_client_keeps_a_burst_that_is_large_beside_the_rate(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of its requests comes after the rest of the one before was lost."""
    settings.RATE_LIMIT, settings.RATE_LIMIT_BURST, settings.WEB_WORKERS = 10, 1000, 1
    monkeypatch.setattr(key_rate_limit, "LEASE_SECONDS", -1.0)
    rooms = [key_rate_limit.take("slow") for _ in range(10)]
    assert rooms[-1] is not None
    assert rooms[-1].remaining >= 980


def test_two_processes_together_never_pass_the_rate_limit(settings: Settings) -> None:
    """One may hold a few requests when the other is refused: at most 5 % of the burst."""
    rate, size = RateLimit(1 / INTERVAL, 400), key_rate_limit.lease_size(400, 2)
    processes, allowed = [KeyRateLimiter(), KeyRateLimiter()], 0
    for number in range(900):
        room = processes[number % 3 == 0].take("key", rate, size)
        allowed += room is not None and room.allowed
        if room is not None and not room.allowed:
            break
    assert 400 * 0.95 <= allowed <= 400
    while any((room := process.take("key", rate, size)) and room.allowed for process in processes):
        allowed += 1
    assert allowed == 400


@pytest.mark.django_db(transaction=True)
@pytest.mark.slow
def test_threads_with_a_lease_never_pass_the_rate_limit() -> None:
    limiter, rate = KeyRateLimiter(), RateLimit(1 / INTERVAL, 1000)

    def ask() -> list[bool]:
        rooms = [limiter.take("key", rate, 6) for _ in range(150)]
        return [room.allowed for room in rooms if room is not None]

    answers = Counter(allowed for found in run_concurrently(*[ask] * 8) for allowed in found)
    assert answers == {True: 1000, False: 200}


def test_lease_ends_after_a_second(monkeypatch: pytest.MonkeyPatch, redis_commands: list[str]) -> None:
    limiter, rate = KeyRateLimiter(), RateLimit(1 / INTERVAL, 1000)
    monkeypatch.setattr(key_rate_limit, "LEASE_SECONDS", -1.0)
    for _ in range(2):
        limiter.take("key", rate, 5)
    assert len(redis_commands) == 2
