"""One process tells many endpoints at once: none of them, and no fault of ours, costs the others."""

from collections import Counter
from datetime import datetime
from threading import Event

import psycopg
import pytest
from django.db import OperationalError, connection
from django.db.models.functions import Now

from tests.conftest import Shop, open_shop
from tests.receiver import Receiver, Reply
from tests.threads import at_once
from tests.webhooks.cast import NOW, make_endpoint, publish
from webhooks import leases
from webhooks.deliveries import Dispatcher
from webhooks.models import Attempt, Delivery, Endpoint

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("loopback")]


@pytest.fixture(autouse=True)
def latencies_are_as_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine makes no endpoint slow."""
    monkeypatch.setattr("webhooks.breaker.NEWEST_SHARE", 0)


def now() -> datetime:
    return NOW


def drain(dispatcher: Dispatcher) -> int:
    return dispatcher.drain(now)


def make_quick(shop: Shop, url: str) -> Endpoint:
    """An endpoint that is known to answer soon."""
    return make_endpoint(shop, url, latency_ms=10)


def states(endpoint: Endpoint | None = None) -> Counter[tuple[str, int]]:
    """How many deliveries are in which state after how many attempts."""
    deliveries = Delivery.objects.all() if endpoint is None else Delivery.objects.filter(endpoint=endpoint)
    return Counter(deliveries.values_list("state", "attempts"))


def test_slow_endpoints_never_get_more_than_half_of_the_threads(rival: Shop, receiver: Receiver) -> None:
    receiver.on("/slow", Reply(hangs=True))
    for number in range(6):
        shop = open_shop(f"Slow {number}")
        make_endpoint(shop, receiver.url("/slow"), latency_ms=5000)
        publish(shop, 4)
    quick = make_quick(rival, receiver.url("/quick"))
    publish(rival, 40)
    dispatcher = Dispatcher(threads=8)

    def watch() -> int:
        try:
            receiver.wait_for(
                lambda requests: (
                    sum(each.path == "/quick" for each in requests) == 40
                    and sum(each.path == "/slow" for each in requests) >= 4
                )
            )
            return len(receiver.to("/slow"))
        finally:
            receiver.closing.set()

    _, under_way = at_once(lambda: drain(dispatcher), watch)
    assert under_way == 4
    assert states(quick) == {("succeeded", 1): 40}


@pytest.mark.parametrize("hanging", [1, 2])
def test_quick_endpoints_that_begin_to_hang_leave_room_for_the_others(
    rival: Shop, receiver: Receiver, hanging: int
) -> None:
    receiver.on("/hangs", Reply(hangs=True))
    for number in range(hanging):
        shop = open_shop(f"Hanging {number}")
        make_quick(shop, receiver.url("/hangs"))
        publish(shop, 40)
    dispatcher = Dispatcher(threads=16)

    def watch() -> bool:
        try:
            receiver.wait_for(lambda requests: len(requests) >= 16 // 3 * hanging)
            make_quick(rival, receiver.url("/other"))
            publish(rival, 40)
            dispatcher.drain(now)
            receiver.wait_for(lambda requests: sum(each.path == "/other" for each in requests) == 40)
            return True
        finally:
            receiver.closing.set()

    assert at_once(lambda: drain(dispatcher), watch)[1]


def test_a_worker_with_its_hands_full_tells_the_others(
    shop: Shop, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    shops = [shop, *(open_shop(f"Shop {number}") for number in range(3))]
    rung: list[int] = []
    monkeypatch.setattr("webhooks.doorbell.ring", lambda: rung.append(1))
    monkeypatch.setattr("webhooks.deliveries.SECONDS_BETWEEN_BELLS", 3600)
    for each in shops:
        make_quick(each, receiver.url())
    publish(shop, 2)
    rung.clear()
    drain(Dispatcher(threads=8))
    assert rung == []
    for each in shops:
        publish(each, 8)
    rung.clear()
    drain(Dispatcher(threads=4))
    assert rung == [1]


def test_after_a_stop_nothing_is_begun_and_what_is_under_way_ends(shop: Shop, receiver: Receiver) -> None:
    stopped = Event()
    receiver.on("/hook", Reply(after=stopped))
    make_quick(shop, receiver.url())
    publish(shop, 10)
    dispatcher = Dispatcher(threads=6)

    def stop() -> int:
        receiver.wait_for(lambda requests: len(requests) == 2)
        dispatcher.stop()
        noted = Attempt.objects.count()
        stopped.set()
        return noted

    assert at_once(lambda: drain(dispatcher), stop) == [2, 0]
    assert drain(dispatcher) == 0
    assert states() == {("succeeded", 1): 2, ("pending", 0): 8}
    assert len(receiver.requests) == 2


def test_a_post_that_fails_by_our_fault_costs_its_lease_and_nobody_elses(
    shop: Shop, rival: Shop, receiver: Receiver, caplog: pytest.LogCaptureFixture
) -> None:
    broken = make_quick(shop, receiver.url("/broken"))
    Endpoint.objects.filter(pk=broken.pk).update(secret_sealed="of another key")
    whole = make_quick(rival, receiver.url())
    publish(shop, 3)
    publish(rival, 20)
    assert drain(Dispatcher(threads=4)) == 23
    assert states(whole) == {("succeeded", 1): 20}
    assert states(broken) == {("leased", 1): 3}
    faults = [record for record in caplog.records if record.name == "webhooks.deliveries"]
    assert [record.levelname for record in faults] == ["ERROR"] * 3
    Delivery.objects.filter(endpoint=broken).update(lease_until=Now())
    leases.reclaim(now=NOW)
    assert states(broken) == {("pending", 1): 3}
    assert set(Attempt.objects.filter(delivery__endpoint=broken).values_list("error", flat=True)) == {
        "worker_lost"
    }


@pytest.mark.parametrize("processes", [1, 2])
def test_two_threads_that_drain_at_once_deliver_each_once(
    shop: Shop, receiver: Receiver, processes: int
) -> None:
    for _ in range(3):
        make_quick(shop, receiver.url())
    publish(shop, 30)
    dispatchers = [Dispatcher(threads=4) for _ in range(processes)]
    first, last = dispatchers[0], dispatchers[-1]
    assert sum(at_once(lambda: drain(first), lambda: drain(last))) == 90
    assert states() == {("succeeded", 1): 90}
    assert len(receiver.requests) == Attempt.objects.count() == 90


def test_what_came_back_while_the_database_was_away_is_noted_by_the_next_drain(
    shop: Shop, receiver: Receiver
) -> None:
    ended = Event()
    receiver.on("/hook", Reply(after=ended))
    make_quick(shop, receiver.url())
    publish(shop, 3)
    dispatcher, ours = Dispatcher(threads=9), connection.connection.info.backend_pid

    def drain_until_the_fault() -> None:
        with pytest.raises(OperationalError):
            drain(dispatcher)
        connection.close()  # as a worker does after each task
        assert states() == {("leased", 1): 3}
        assert drain(dispatcher) == 0

    def end_sessions() -> None:
        receiver.wait_for(lambda requests: len(requests) == 3)
        end_sessions_but(ours)
        ended.set()

    at_once(drain_until_the_fault, end_sessions)
    assert states() == {("succeeded", 1): 3}
    assert len(receiver.requests) == Attempt.objects.count() == 3


def end_sessions_but(ours: int) -> None:
    """End every other session in this database, from outside."""
    with psycopg.connect(
        connection.connection.info.dsn, password=connection.settings_dict["PASSWORD"]
    ) as outside:
        outside.execute(
            "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> ALL(%s)",
            [[ours, connection.connection.info.backend_pid, outside.info.backend_pid]],
        )


def test_an_answer_that_cannot_be_written_costs_only_its_lease(
    shop: Shop, rival: Shop, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver.on("/bad", Reply(body=b"bad"))
    bad, good = make_quick(shop, receiver.url("/bad")), make_quick(rival, receiver.url("/good"))
    publish(shop)
    publish(rival, 5)
    # PostgreSQL takes no U+0000, which the client therefore takes out.
    monkeypatch.setattr("webhooks.client._excerpt", lambda body: "\0" if body == b"bad" else "")
    assert drain(Dispatcher(threads=8)) == 6
    assert states(good) == {("succeeded", 1): 5}
    assert states(bad) == {("leased", 1): 1}
