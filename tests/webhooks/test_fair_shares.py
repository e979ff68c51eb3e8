"""A merchant with many endpoints does not delay deliveries, look-ups and connections of others."""

import threading
from collections import Counter
from collections.abc import Callable
from contextlib import contextmanager
from itertools import product
from typing import Any

import pytest

from tests.concurrency import run_concurrently
from tests.conftest import Shop, open_shop
from tests.examples import FACTOR
from tests.webhook_receiver import Receiver, Reply
from tests.webhooks.builders import NOW, claim, make_endpoint, publish
from tests.webhooks.hostile_urls import PUBLIC, resolve
from tests.webhooks.misbehaving_receivers import listening, replies
from tests.webhooks.post_calls import OK, post
from tests.webhooks.test_dns import dead_resolver
from webhooks.delivery.dispatcher import Dispatcher
from webhooks.delivery.queue import MAX_IN_FLIGHT, SLOW_MS, Quota
from webhooks.http import connections, url_check
from webhooks.http.url_check import UrlPolicy, UrlRejected
from webhooks.models import Delivery

pytestmark = [pytest.mark.django_db]

SLOW = SLOW_MS + 1
STRICT = UrlPolicy()


# --- claims


@pytest.mark.slow
def test_merchant_with_many_slow_endpoints_gets_one_share_of_the_slow_quota(
    shop: Shop, other_shop: Shop
) -> None:
    for _ in range(20):
        make_endpoint(shop, latency_ms=SLOW)
    publish(shop, 4)
    mine = claim(100, slow=48, slow_per_merchant=12)
    assert Counter(lease.quota for lease in mine) == {Quota.SLOW: 12}
    make_endpoint(other_shop, latency_ms=SLOW)
    publish(other_shop)
    others = claim(88, slow=36, slow_per_merchant=12, in_flight=mine)
    assert [lease.endpoint.merchant_id for lease in others] == [other_shop.merchant.id]


def test_merchant_with_many_quick_endpoints_gets_one_share_of_all_posts(shop: Shop) -> None:
    for latency_ms in (10, 10, 300, 300, SLOW, SLOW):
        make_endpoint(shop, latency_ms=latency_ms)
    publish(shop, 40)
    mine = claim(100, per_merchant=13)
    assert len(mine) == 13
    assert claim(100, per_merchant=13, in_flight=mine) == []
    assert len(claim(100, per_merchant=13, in_flight=mine[:10])) == 3


def test_merchant_with_fewest_posts_under_way_comes_first(shop: Shop, other_shop: Shop) -> None:
    make_endpoint(shop, latency_ms=300)
    publish(shop, 9)
    mine = claim(1)
    make_endpoint(other_shop, latency_ms=300)
    publish(other_shop, 9)
    assert {claim(1, in_flight=mine)[0].endpoint.merchant_id for _ in range(MAX_IN_FLIGHT)} == {
        other_shop.merchant.id
    }


@pytest.mark.slow
def test_merchant_share_goes_to_endpoints_with_due_deliveries(shop: Shop) -> None:
    """Endpoints that wait for a retry must not use up the share of their merchant."""
    for _ in range(20):
        make_endpoint(shop, latency_ms=300)
    publish(shop)
    due = Delivery.objects.earliest("id")
    Delivery.objects.exclude(pk=due.pk).update(due_at=NOW.replace(year=2027))
    assert [lease.delivery_id for lease in claim(9, per_merchant=1)] == [due.id]


def test_full_share_of_a_merchant_leaves_the_next_quota_to_other_merchants(
    shop: Shop, other_shop: Shop
) -> None:
    for each in (shop, other_shop):
        make_endpoint(each, latency_ms=10)
        publish(each, 40)
    mine = claim(100, per_merchant=30, extra=60)
    assert Counter(lease.endpoint.merchant_id for lease in mine) == {
        shop.merchant.id: 30,
        other_shop.merchant.id: 30,
    }


# --- a worker

NewDispatcher = Callable[[int], Dispatcher]
# Milliseconds that endpoints of two merchants took before. None: they are new. All with EXAMPLES_FACTOR=1.
LATENCIES = (None, 10, 5000)
PAIRS = list(product(LATENCIES, LATENCIES)) if FACTOR >= 1 else [(None, None), (10, 5000), (5000, 10)]


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("loopback")
@pytest.mark.parametrize(("latency_ms", "other_ms"), PAIRS)
@pytest.mark.slow
def test_seventy_hanging_endpoints_do_not_delay_another_merchant(
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
    latency_ms: int | None,
    other_ms: int | None,
    new_dispatcher: NewDispatcher,
) -> None:
    """The hanging endpoints answer only after the other merchant has its message."""
    monkeypatch.setattr("webhooks.delivery.circuit_breaker.LATENCY_WEIGHT", 0)
    greedy, other = open_shop("Greedy"), open_shop("Other")
    receiver.on("/hangs", Reply(hangs=True))
    for _ in range(70):
        make_endpoint(greedy, receiver.url("/hangs"), latency_ms=latency_ms)
    publish(greedy, 4)
    dispatcher = new_dispatcher(24)
    share = 24 // 3 if latency_ms == 10 else 24 // 8

    def watch() -> Counter[str]:
        try:
            receiver.wait_for(lambda requests: len(requests) >= share)
            make_endpoint(other, receiver.url("/other"), latency_ms=other_ms)
            publish(other)
            dispatcher.drain(lambda: NOW)
            receiver.wait_for(lambda requests: any(each.path == "/other" for each in requests))
            return Counter(request.path for request in receiver.requests)
        finally:
            receiver.closing.set()

    _, seen = run_concurrently(lambda: dispatcher.drain(lambda: NOW), watch)
    assert seen == {"/hangs": share, "/other": 1}


# --- look-ups


def look_up(name: str, resolver: Any, merchant_id: str, timeout: float = 60.0) -> list[str]:
    target = url_check.parse_target(f"https://{name}/", STRICT)
    found = resolve(target, STRICT, resolver, timeout, merchant_id=merchant_id)
    return [str(address) for address in found]


@pytest.mark.slow
def test_slow_dns_lookups_of_a_merchant_do_not_delay_other_merchants(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webhooks.http.dns.MAX_LOOKUPS_PER_MERCHANT", 2)
    calls: list[str] = []
    with dead_resolver(calls) as dead:

        def resolver(host: str, port: int, **options: Any) -> Any:
            slow = host.startswith("slow")
            return dead(host, port, **options) if slow else [(0, 0, 0, "", (PUBLIC, port))]

        for number in range(5):
            with pytest.raises(UrlRejected):
                look_up(f"slow{number}.test", resolver, "greedy", timeout=0.02)
        assert calls == ["slow0.test", "slow1.test"]
        assert look_up("shop.test", resolver, "other") == [PUBLIC]
    assert look_up("shop.test", resolver, "greedy") == [PUBLIC]


@pytest.mark.slow
def test_dns_lookup_waits_for_a_free_slot_of_the_merchant(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many names of one merchant at once wait and are not refused."""
    monkeypatch.setattr("webhooks.http.dns.MAX_LOOKUPS_PER_MERCHANT", 2)
    at_a_time: list[int] = []
    running, lock = [0], threading.Lock()

    @contextmanager
    def counted() -> Any:
        with lock:
            running[0] += 1
            at_a_time.append(running[0])
        yield
        with lock:
            running[0] -= 1

    def resolver(host: str, port: int, **_: Any) -> Any:
        with counted():
            threading.Event().wait(0.01)
            return [(0, 0, 0, "", (PUBLIC, port))]

    asks = [lambda number=number: look_up(f"name{number}.test", resolver, "shop") for number in range(8)]
    assert run_concurrently(*asks) == [[PUBLIC]] * 8
    assert max(at_a_time) <= 2


# --- kept connections


def test_pooled_connections_of_a_merchant_do_not_close_those_of_other_merchants(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "MAX_IDLE_PER_MERCHANT", 2)
    monkeypatch.setattr(connections, "MAX_IDLE", 4)
    monkeypatch.setattr(connections, "IDLE_CONNECTIONS", connections.ConnectionPool())
    with listening(replies(OK)) as kept:
        assert post(kept.url(), merchant_id="other").error == ""
        for _ in range(6):
            with listening(replies(OK)) as receiver:
                assert post(receiver.url(), merchant_id="greedy").error == ""
        assert post(kept.url(), merchant_id="other").error == ""
    assert kept.connections == 1


def test_pooled_connection_of_one_merchant_is_not_used_for_another() -> None:
    with listening(replies(OK)) as receiver:
        for merchant_id in ("one", "other", "one", "other"):
            assert post(receiver.url(), merchant_id=merchant_id).error == ""
    assert receiver.connections == 2
