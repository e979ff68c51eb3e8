"""However many endpoints a merchant has, other merchants get their deliveries, look-ups and connections."""

import threading
from collections import Counter
from contextlib import contextmanager
from typing import Any

import pytest

from tests.conftest import Shop, open_shop
from tests.receiver import Receiver, Reply
from tests.threads import at_once
from tests.webhooks.cast import NOW, claim, make_endpoint, publish
from tests.webhooks.corpus import PUBLIC
from tests.webhooks.posting import OK, post
from tests.webhooks.receivers import listening, replies
from tests.webhooks.test_lookups import dead_resolver
from webhooks import client, idle, targets
from webhooks.deliveries import Dispatcher
from webhooks.leases import IN_FLIGHT, SLOW_MS, Lane
from webhooks.models import Delivery
from webhooks.targets import BadTarget, Policy

pytestmark = [pytest.mark.django_db]

SLOW = SLOW_MS + 1
STRICT = Policy()


# --- claims


def test_merchant_with_many_slow_endpoints_gets_its_share_of_the_slow_lane(shop: Shop, rival: Shop) -> None:
    for _ in range(20):
        make_endpoint(shop, latency_ms=SLOW)
    publish(shop, 4)
    mine = claim(100, slow=48, slow_of_merchant=12)
    assert Counter(lease.lane for lease in mine) == {Lane.SLOW: 12}
    make_endpoint(rival, latency_ms=SLOW)
    publish(rival)
    others = claim(88, slow=36, slow_of_merchant=12, under_way=mine)
    assert [lease.endpoint.merchant_id for lease in others] == [rival.merchant.id]


def test_merchant_with_many_quick_endpoints_gets_its_share_of_all_posts(shop: Shop) -> None:
    for latency_ms in (10, 10, 300, 300, SLOW, SLOW):
        make_endpoint(shop, latency_ms=latency_ms)
    publish(shop, 40)
    mine = claim(100, of_merchant=13)
    assert len(mine) == 13
    assert claim(100, of_merchant=13, under_way=mine) == []
    assert len(claim(100, of_merchant=13, under_way=mine[:10])) == 3


def test_merchant_with_fewest_posts_under_way_comes_first(shop: Shop, rival: Shop) -> None:
    make_endpoint(shop, latency_ms=300)
    publish(shop, 9)
    mine = claim(1)
    make_endpoint(rival, latency_ms=300)
    publish(rival, 9)
    assert {claim(1, under_way=mine)[0].endpoint.merchant_id for _ in range(IN_FLIGHT)} == {rival.merchant.id}


def test_share_of_a_merchant_goes_to_endpoints_with_something_due(shop: Shop) -> None:
    """Endpoints that wait for a retry must not use up the share of their merchant."""
    for _ in range(20):
        make_endpoint(shop, latency_ms=300)
    publish(shop)
    due = Delivery.objects.earliest("id")
    Delivery.objects.exclude(pk=due.pk).update(due_at=NOW.replace(year=2027))
    assert [lease.delivery_id for lease in claim(9, of_merchant=1)] == [due.id]


def test_full_share_of_one_merchant_leaves_the_next_lane_to_others(shop: Shop, rival: Shop) -> None:
    for each in (shop, rival):
        make_endpoint(each, latency_ms=10)
        publish(each, 40)
    mine = claim(100, of_merchant=30, extra=60)
    assert Counter(lease.endpoint.merchant_id for lease in mine) == {
        shop.merchant.id: 30,
        rival.merchant.id: 30,
    }


# --- a worker


@pytest.mark.django_db(transaction=True)
@pytest.mark.usefixtures("loopback")
@pytest.mark.parametrize("latency_ms", [None, 10, 5000], ids=["new", "quick", "slow"])
@pytest.mark.parametrize("other_ms", [None, 10, 5000], ids=["new", "quick", "slow"])
def test_seventy_hanging_endpoints_of_one_merchant_do_not_delay_another(
    receiver: Receiver, monkeypatch: pytest.MonkeyPatch, latency_ms: int | None, other_ms: int | None
) -> None:
    """The hanging ones answer only after the other merchant has its message."""
    monkeypatch.setattr("webhooks.breaker.NEWEST_SHARE", 0)
    greedy, other = open_shop("Greedy"), open_shop("Other")
    receiver.on("/hangs", Reply(hangs=True))
    for _ in range(70):
        make_endpoint(greedy, receiver.url("/hangs"), latency_ms=latency_ms)
    publish(greedy, 4)
    dispatcher = Dispatcher(threads=24)
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

    _, seen = at_once(lambda: dispatcher.drain(lambda: NOW), watch)
    assert seen == {"/hangs": share, "/other": 1}


# --- look-ups


def look_up(name: str, resolver: Any, merchant_id: str, timeout: float = 60.0) -> list[str]:
    target = targets.parse_target(f"https://{name}/", STRICT)
    found = targets.resolve(target, STRICT, resolver, timeout, merchant_id=merchant_id)
    return [str(address) for address in found]


def test_slow_names_of_one_merchant_leave_look_ups_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("webhooks.lookups.MOST_FOR_ONE", 2)
    calls: list[str] = []
    with dead_resolver(calls) as dead:

        def resolver(host: str, port: int, **options: Any) -> Any:
            slow = host.startswith("slow")
            return dead(host, port, **options) if slow else [(0, 0, 0, "", (PUBLIC, port))]

        for number in range(5):
            with pytest.raises(BadTarget):
                look_up(f"slow{number}.test", resolver, "greedy", timeout=0.02)
        assert calls == ["slow0.test", "slow1.test"]
        assert look_up("shop.test", resolver, "other") == [PUBLIC]
    assert look_up("shop.test", resolver, "greedy") == [PUBLIC]


def test_look_up_waits_for_a_free_place_of_its_merchant(monkeypatch: pytest.MonkeyPatch) -> None:
    """Many names of one merchant at once are slower, not refused."""
    monkeypatch.setattr("webhooks.lookups.MOST_FOR_ONE", 2)
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
    assert at_once(*asks) == [[PUBLIC]] * 8
    assert max(at_a_time) <= 2


# --- kept connections


def test_kept_connections_of_one_merchant_do_not_push_out_those_of_others(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(idle, "MOST_IDLE_FOR_ONE", 2)
    monkeypatch.setattr(idle, "MOST_IDLE", 4)
    client.ADAPTER.close()
    with listening(replies(OK)) as kept:
        assert post(kept.url(), merchant_id="other").error == ""
        for _ in range(6):
            with listening(replies(OK)) as receiver:
                assert post(receiver.url(), merchant_id="greedy").error == ""
        assert post(kept.url(), merchant_id="other").error == ""
    assert kept.connections == 1


def test_kept_connection_of_one_merchant_is_not_used_for_another() -> None:
    with listening(replies(OK)) as receiver:
        for merchant_id in ("one", "other", "one", "other"):
            assert post(receiver.url(), merchant_id=merchant_id).error == ""
    assert receiver.connections == 2
