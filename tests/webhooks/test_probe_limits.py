"""Probes are limited in rate and number, so that they delay nobody and cannot scan ports."""

import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection
from pytest_django import Settings

from core.http.rate_limits import RateLimit
from tests.conftest import Shop, open_shop
from tests.error_messages import check_error
from tests.webhook_receiver import Receiver, Reply
from tests.webhooks.builders import PAYMENT_SUCCEEDED, make_endpoint
from webhooks import probes
from webhooks.models import Endpoint

pytestmark = [pytest.mark.slow, pytest.mark.django_db, pytest.mark.usefixtures("loopback")]

PATH = "/Thai/v1/webhooks"
BURST = 3
INTERVAL = 100_000  # seconds


@pytest.fixture
def rare(monkeypatch: pytest.MonkeyPatch) -> None:
    """Set a rate so low that no probe becomes free during a test."""
    monkeypatch.setattr(probes, "RATE_PER_MERCHANT", RateLimit(per_second=1 / INTERVAL, burst=BURST))


def register(shop: Shop, url: str) -> Any:
    return shop.post(PATH, {"url": url, "events": [PAYMENT_SUCCEEDED]})


def refused(answer: Any) -> bool:
    """Whether the response is a 429 with Retry-After, or a success."""
    if answer.status_code == 200:
        return False
    assert (answer.status_code, answer.json()["error"]["code"]) == (429, "rate_limit_exceeded")
    assert answer.headers["Retry-After"] in answer.json()["error"]["message"]
    return True


@contextmanager
def under_way(receiver: Receiver, *requests: Callable[[], Any]) -> Iterator[list[Future[Any]]]:
    """Run the requests in threads. The receiver holds them until the block ends."""

    def run(request: Callable[[], Any]) -> Any:
        try:
            return request()
        finally:
            connection.close()

    receiver.on("/slow", Reply(hangs=True))
    with ThreadPoolExecutor(len(requests)) as pool:
        answers = [pool.submit(run, request) for request in requests]
        receiver.wait_for(lambda received: len(received) == len(requests))
        try:
            yield answers
        finally:
            receiver.closing.set()


@pytest.mark.usefixtures("rare")
@pytest.mark.parametrize("probe", ["reachable", "off"])
def test_probes_beyond_burst_are_rate_limited(
    shop: Shop, receiver: Receiver, settings: Settings, probe: str
) -> None:
    settings.WEBHOOK_PROBE = probe
    began = time.monotonic()
    answers = [register(shop, receiver.url()) for _ in range(BURST + 2)]
    passed = time.monotonic() - began
    assert [refused(answer) for answer in answers] == [False] * BURST + [True] * 2
    assert INTERVAL - passed <= int(answers[-1].headers["Retry-After"]) <= INTERVAL
    assert Endpoint.objects.count() == BURST
    assert len(receiver.requests) == (BURST if probe == "reachable" else 0)


@pytest.mark.usefixtures("rare")
def test_only_urls_that_ask_the_network_count_towards_probe_rate(shop: Shop, receiver: Receiver) -> None:
    for url, count in (("https://10.0.0.1/", BURST + 1), ("https://shop.invalid/", BURST)):
        assert [register(shop, url).status_code for _ in range(count)] == [422] * count
    assert refused(register(shop, receiver.url()))
    assert receiver.requests == []


@pytest.mark.usefixtures("rare")
def test_only_changed_urls_count_towards_probe_rate(shop: Shop, receiver: Receiver) -> None:
    endpoint = make_endpoint(shop, receiver.url("/0"))
    urls = [receiver.url(f"/{number}") for number in (0, 0, 1, 1, 2, 2, 3, 4)]
    answers = [shop.patch(f"{PATH}/{endpoint.id}", {"url": url}) for url in urls]
    assert [refused(answer) for answer in answers] == [False] * 7 + [True]
    endpoint.refresh_from_db()
    assert endpoint.url == receiver.url("/3")


@pytest.mark.usefixtures("rare")
def test_probe_rate_is_separate_for_each_merchant(shop: Shop, other_shop: Shop, receiver: Receiver) -> None:
    for _ in range(BURST):
        register(shop, receiver.url())
    assert refused(register(shop, receiver.url()))
    assert not refused(register(other_shop, receiver.url()))


@pytest.mark.usefixtures("rare")
def test_rate_limited_probe_can_be_repeated_under_same_idempotency_key(
    shop: Shop, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = {"url": receiver.url(), "events": [PAYMENT_SUCCEEDED]}
    for _ in range(BURST):
        register(shop, receiver.url())
    assert refused(shop.post(PATH, body, key="once"))
    monkeypatch.setattr(probes, "RATE_PER_MERCHANT", RateLimit(per_second=1 / INTERVAL, burst=BURST + 1))
    assert not refused(shop.post(PATH, body, key="once"))


@pytest.mark.usefixtures("rare")
@pytest.mark.parametrize("change", [{"RATE_LIMIT": 0}, {"REDIS_URL": "redis://127.0.0.1:1/0"}], ids=str)
def test_probes_are_not_limited_without_rate_limit_or_redis(
    shop: Shop, receiver: Receiver, settings: Settings, change: dict[str, Any]
) -> None:
    for name, value in change.items():
        setattr(settings, name, value)
    assert not any(refused(register(shop, receiver.url())) for _ in range(BURST + 1))


@pytest.mark.django_db(transaction=True)
def test_second_concurrent_probe_of_a_merchant_is_refused(receiver: Receiver) -> None:
    greedy, other = open_shop("Greedy"), open_shop("Other")
    with under_way(receiver, lambda: register(greedy, receiver.url("/slow"))) as (slow,):
        assert refused(register(greedy, receiver.url()))
        assert register(other, receiver.url()).status_code == 200
    assert slow.result().json()["error"]["code"] == "invalid_url"
    assert len(receiver.requests) == 2


@pytest.mark.django_db(transaction=True)
def test_too_many_concurrent_probes_are_refused(receiver: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(probes, "WAIT_SECONDS", 0.05)
    late, *shops = (open_shop(f"Shop {number}") for number in range(probes.MAX_CONCURRENT_PROBES + 1))
    requests = [lambda shop=shop: register(shop, receiver.url("/slow")) for shop in shops]
    with under_way(receiver, *requests):
        answer = register(late, receiver.url())
        assert answer.status_code == 503
        check_error(answer.json(), "service_unavailable")
        assert int(answer.headers["Retry-After"]) > 0
    assert len(receiver.requests) == probes.MAX_CONCURRENT_PROBES


@pytest.mark.django_db(transaction=True)
def test_probe_slot_is_released_after_probe(shop: Shop, receiver: Receiver) -> None:
    receiver.on("/hook", *[Reply(closes=True)] * 3, Reply())
    answers = [register(shop, receiver.url()).status_code for _ in range(4)]
    assert answers == [422, 422, 422, 200]
