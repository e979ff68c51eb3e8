"""One process delivers to many endpoints at once. An endpoint or an error does not delay the others."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from datetime import datetime
from threading import Event
from typing import Any

import psycopg
import pytest
from django.db import OperationalError, connection
from django.db.models.functions import Now

from tests.concurrency import run_concurrently
from tests.conftest import Shop, open_shop
from tests.stack import wait_until
from tests.webhook_receiver import Receiver, Reply
from tests.webhooks.builders import NOW, make_endpoint, publish
from webhooks.delivery import attempt_log, queue
from webhooks.delivery.attempt_log import DeliveryResult
from webhooks.delivery.dispatcher import Dispatcher
from webhooks.delivery.queue import Lease, RoundRobinClaimer
from webhooks.http import client
from webhooks.http.client import PostResult
from webhooks.models import Delivery, DeliveryAttempt, DeliveryLease, Endpoint

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("loopback")]
NewDispatcher = Callable[[int], Dispatcher]


@pytest.fixture(autouse=True)
def no_latency_updates(monkeypatch: pytest.MonkeyPatch) -> None:
    """Keep the latency of endpoints on a busy machine."""
    monkeypatch.setattr("webhooks.delivery.circuit_breaker.LATENCY_WEIGHT", 0)


def now() -> datetime:
    return NOW


def drain(dispatcher: Dispatcher) -> int:
    return dispatcher.drain(now)


def make_quick(shop: Shop, url: str) -> Endpoint:
    """An endpoint with a low latency."""
    return make_endpoint(shop, url, latency_ms=10)


def states(endpoint: Endpoint | None = None) -> Counter[tuple[str, int]]:
    """Count deliveries by state and number of attempts."""
    deliveries = Delivery.objects.all() if endpoint is None else Delivery.objects.filter(endpoint=endpoint)
    return Counter(deliveries.values_list("state", "attempt_count"))


def test_slow_endpoints_never_get_more_than_half_of_the_posts(
    other_shop: Shop, receiver: Receiver, new_dispatcher: NewDispatcher
) -> None:
    receiver.on("/slow", Reply(hangs=True))
    for number in range(6):
        shop = open_shop(f"Slow {number}")
        make_endpoint(shop, receiver.url("/slow"), latency_ms=5000)
        publish(shop, 4)
    quick = make_quick(other_shop, receiver.url("/quick"))
    publish(other_shop, 40)
    dispatcher = new_dispatcher(8)

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

    _, under_way = run_concurrently(lambda: drain(dispatcher), watch)
    assert under_way == 4
    assert states(quick) == {("succeeded", 1): 40}


@pytest.mark.parametrize("hanging", [1, 2])
def test_quick_endpoints_that_start_to_hang_leave_posts_for_other_endpoints(
    other_shop: Shop,
    receiver: Receiver,
    hanging: int,
    new_dispatcher: NewDispatcher,
) -> None:
    receiver.on("/hangs", Reply(hangs=True))
    for number in range(hanging):
        shop = open_shop(f"Hanging {number}")
        make_quick(shop, receiver.url("/hangs"))
        publish(shop, 40)
    dispatcher = new_dispatcher(16)

    def watch() -> bool:
        try:
            receiver.wait_for(lambda requests: len(requests) >= 16 // 3 * hanging)
            make_quick(other_shop, receiver.url("/other"))
            publish(other_shop, 40)
            dispatcher.drain(now)
            receiver.wait_for(lambda requests: sum(each.path == "/other" for each in requests) == 40)
            return True
        finally:
            receiver.closing.set()

    assert run_concurrently(lambda: drain(dispatcher), watch)[1]


def test_webhook_worker_with_all_posts_in_flight_wakes_another_worker(
    shop: Shop,
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
    new_dispatcher: NewDispatcher,
) -> None:
    shops = [shop, *(open_shop(f"Shop {number}") for number in range(3))]
    wakeups: list[int] = []
    monkeypatch.setattr("webhooks.wakeup.wake", lambda: wakeups.append(1))
    monkeypatch.setattr("webhooks.delivery.dispatcher.SECONDS_BETWEEN_WAKEUPS", 3600)
    for each in shops:
        make_quick(each, receiver.url())
    publish(shop, 2)
    wakeups.clear()
    drain(new_dispatcher(8))
    assert wakeups == []
    for each in shops:
        publish(each, 8)
    wakeups.clear()
    drain(new_dispatcher(4))
    assert wakeups == [1]


def test_stopped_dispatcher_finishes_posts_in_flight_and_starts_no_others(
    shop: Shop,
    receiver: Receiver,
    new_dispatcher: NewDispatcher,
) -> None:
    stopped = Event()
    receiver.on("/hook", Reply(after=stopped))
    make_quick(shop, receiver.url())
    publish(shop, 10)
    dispatcher = new_dispatcher(6)

    def stop() -> int:
        receiver.wait_for(lambda requests: len(requests) == 2)
        dispatcher.stop()
        recorded = DeliveryAttempt.objects.count()
        stopped.set()
        return recorded

    assert run_concurrently(lambda: drain(dispatcher), stop) == [2, 0]
    assert drain(dispatcher) == 0
    assert states() == {("succeeded", 1): 2, ("pending", 0): 8}
    assert len(receiver.requests) == 2


def test_internal_error_in_a_delivery_does_not_affect_other_deliveries(
    shop: Shop,
    other_shop: Shop,
    receiver: Receiver,
    caplog: pytest.LogCaptureFixture,
    new_dispatcher: NewDispatcher,
) -> None:
    broken = make_quick(shop, receiver.url("/broken"))
    Endpoint.objects.filter(pk=broken.pk).update(secret_sealed="of another key")
    whole = make_quick(other_shop, receiver.url())
    publish(shop, 3)
    publish(other_shop, 20)
    assert drain(new_dispatcher(4)) == 23
    assert states(whole) == {("succeeded", 1): 20}
    assert states(broken) == {("pending", 0): 3}
    faults = [record for record in caplog.records if record.name == "webhooks.delivery.dispatcher"]
    assert [record.levelname for record in faults] == ["ERROR"] * 3
    DeliveryLease.objects.filter(endpoint_id=broken.pk).update(lease_until=Now())
    queue.reclaim_expired(now=NOW)
    assert states(broken) == {("pending", 1): 3}
    assert set(DeliveryAttempt.objects.filter(delivery__endpoint=broken).values_list("error", flat=True)) == {
        "worker_lost"
    }


@pytest.mark.parametrize("processes", [1, 2])
def test_concurrent_drains_deliver_each_event_once(
    shop: Shop, receiver: Receiver, processes: int, new_dispatcher: NewDispatcher
) -> None:
    for _ in range(3):
        make_quick(shop, receiver.url())
    publish(shop, 30)
    dispatchers = [new_dispatcher(4) for _ in range(processes)]
    first, last = dispatchers[0], dispatchers[-1]
    assert sum(run_concurrently(lambda: drain(first), lambda: drain(last))) == 90
    assert states() == {("succeeded", 1): 90}
    assert len(receiver.requests) == DeliveryAttempt.objects.count() == 90


def test_delivery_results_during_a_database_outage_are_recorded_by_the_next_drain(
    shop: Shop,
    receiver: Receiver,
    new_dispatcher: NewDispatcher,
) -> None:
    ended = Event()
    receiver.on("/hook", Reply(after=ended))
    make_quick(shop, receiver.url())
    publish(shop, 3)
    dispatcher, ours = new_dispatcher(9), connection.connection.info.backend_pid

    def drain_until_the_fault() -> None:
        with pytest.raises(OperationalError):
            drain(dispatcher)
        connection.close()  # as a worker does after each task
        assert states() == {("pending", 0): DeliveryLease.objects.count()} == {("pending", 0): 3}
        assert drain(dispatcher) == 0

    def end_sessions() -> None:
        receiver.wait_for(lambda requests: len(requests) == 3)
        end_sessions_but(ours)
        ended.set()

    run_concurrently(drain_until_the_fault, end_sessions)
    assert states() == {("succeeded", 1): 3}
    assert len(receiver.requests) == DeliveryAttempt.objects.count() == 3


def outside_session() -> "psycopg.Connection[Any]":
    return psycopg.connect(
        connection.connection.info.dsn, password=connection.settings_dict["PASSWORD"], autocommit=True
    )


def end_sessions_but(ours: int) -> None:
    """End all sessions in this database except these two."""
    with outside_session() as outside:
        outside.execute(
            "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> ALL(%s)",
            [[ours, connection.connection.info.backend_pid, outside.info.backend_pid]],
        )


@contextmanager
def recording_waits(endpoint: Endpoint) -> Iterator[None]:
    """Results of the endpoint cannot be recorded meanwhile."""
    with outside_session() as outside, outside.transaction():
        outside.execute(
            "SELECT FROM webhooks_endpointhealth WHERE endpoint_id = %s FOR UPDATE", [endpoint.pk]
        )
        yield


def test_posts_go_on_while_a_recording_waits_and_after_it(
    shop: Shop, other_shop: Shop, receiver: Receiver, new_dispatcher: NewDispatcher
) -> None:
    receiver.on("/hangs", Reply(hangs=True))
    make_quick(shop, receiver.url("/hangs"))
    make_quick(other_shop, receiver.url("/other"))
    publish(other_shop)
    locked = make_quick(shop, receiver.url("/locked"))
    publish(shop)
    dispatcher, lock = new_dispatcher(8), ExitStack()

    def watch() -> int:
        with lock:
            receiver.wait_for(lambda requests: len(requests) == 3)
            publish(other_shop, 30)
            dispatcher.drain(now)
            # So many results may wait.
            receiver.wait_for(lambda requests: sum(each.path == "/other" for each in requests) >= 8)
            recorded = DeliveryAttempt.objects.filter(delivery__endpoint=locked).count()
        receiver.wait_for(lambda requests: sum(each.path == "/other" for each in requests) == 31)
        receiver.closing.set()
        return recorded

    lock.enter_context(recording_waits(locked))
    assert run_concurrently(lambda: drain(dispatcher), watch)[1] == 0
    assert states(locked) == {("succeeded", 1): 1}


def test_delivery_results_of_a_recording_that_broke_off_are_recorded_by_the_next_drain(
    shop: Shop, other_shop: Shop, receiver: Receiver, new_dispatcher: NewDispatcher
) -> None:
    receiver.on("/hangs", Reply(hangs=True))
    make_quick(other_shop, receiver.url("/hangs"))
    locked = make_quick(shop, receiver.url("/locked"))
    publish(other_shop)
    publish(shop)
    dispatcher, lock = new_dispatcher(9), ExitStack()

    def drain_until_the_fault() -> None:
        with pytest.raises(OperationalError):
            drain(dispatcher)
        receiver.closing.set()
        drain(dispatcher)

    def end_the_recording() -> None:
        with lock, outside_session() as outside:
            waiting = (
                "SELECT pg_terminate_backend(pid, 60000) FROM pg_stat_activity"
                " WHERE datname = current_database() AND wait_event_type = 'Lock'"
            )
            wait_until(lambda: outside.execute(waiting).fetchone() is not None, 60)

    lock.enter_context(recording_waits(locked))
    run_concurrently(drain_until_the_fault, end_the_recording)
    assert states(locked) == {("succeeded", 1): 1}
    assert (
        len(receiver.to("/locked")) == DeliveryAttempt.objects.filter(delivery__endpoint=locked).count() == 1
    )


def test_delivery_result_that_cannot_be_stored_does_not_affect_other_deliveries(
    shop: Shop,
    other_shop: Shop,
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
    new_dispatcher: NewDispatcher,
) -> None:
    receiver.on("/bad", Reply(body=b"bad"))
    bad, good = make_quick(shop, receiver.url("/bad")), make_quick(other_shop, receiver.url("/good"))
    publish(shop)
    publish(other_shop, 5)
    post = client.post

    async def post_and_break(url: str, **given: Any) -> PostResult:
        result = await post(url, **given)
        # PostgreSQL takes no U+0000, which the client therefore takes out.
        return replace(result, excerpt="\0") if result.excerpt == "bad" else result

    monkeypatch.setattr(client, "post", post_and_break)
    assert drain(new_dispatcher(8)) == 6
    assert states(good) == {("succeeded", 1): 5}
    assert states(bad) == {("pending", 0): DeliveryLease.objects.count()} == {("pending", 0): 1}


@pytest.mark.parametrize(("status", "has_claimed_more"), [(200, True), (500, False)])
def test_results_are_recorded_while_further_posts_to_a_working_endpoint_run(
    shop: Shop,
    receiver: Receiver,
    monkeypatch: pytest.MonkeyPatch,
    status: int,
    has_claimed_more: bool,
    new_dispatcher: NewDispatcher,
) -> None:
    """A failure may pause the endpoint, so it counts as in flight until it is recorded."""
    receiver.on("/quick", Reply(status=status))
    make_quick(shop, receiver.url("/quick"))
    publish(shop, 2 * queue.MAX_IN_FLIGHT_QUICK)
    claimed: list[int] = []
    at_first_record: list[tuple[int, int]] = []
    claim, record = queue.RoundRobinClaimer.claim, attempt_log.record

    def count_claimed(claimer: RoundRobinClaimer, **limits: Any) -> list[Lease]:
        found = claim(claimer, **limits)
        claimed.append(len(found))
        return found

    def count_ended(results: Sequence[DeliveryResult]) -> set[str]:
        at_first_record.append((sum(claimed[1:]), len(results)))
        return record(results)

    monkeypatch.setattr(queue.RoundRobinClaimer, "claim", count_claimed)
    monkeypatch.setattr(attempt_log, "record", count_ended)
    drain(new_dispatcher(192))  # more than one endpoint may use
    further, ended = at_first_record[0]
    assert further == (ended if has_claimed_more else 0)
