"""An endpoint that fails is left alone for a while, and nothing it should be told is used up meanwhile."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest
from pytest_django import Settings

from tests.conftest import Shop
from tests.receiver import Receiver, Reply
from tests.webhooks.cast import NOW, claim, make_endpoint, publish
from webhooks import breaker, deliveries, endpoints, notes, replays
from webhooks.client import Answer
from webhooks.leases import IN_FLIGHT, Lease
from webhooks.models import Attempt, Delivery, Endpoint, Health
from webhooks.notes import Result

OK = Answer(status=200, error="", excerpt="", duration_ms=20, peer="192.0.2.1", retry_after=None)
FAILED = replace(OK, status=500, error="http_5xx")
SECOND = timedelta(seconds=1)


def after(*errors: str, health: Health | None = None, at: datetime = NOW, pace: float = 1) -> Health:
    """The health after attempts that ended so, one a millisecond."""
    health = health or Health()
    for number, error in enumerate(errors):
        when = at + number * SECOND / 1000
        breaker.note(health, error=error, duration_ms=100, began=when, now=when, pace=pace)
    return health


def pause_of(health: Health) -> float | None:
    return health.pause_seconds or None


OUTCOMES = [
    (["timeout"] * 9, None),
    (["timeout"] * 10, 30),
    (["timeout"] * 9 + ["", "timeout"], 30),  # 10 of 11 failed
    (["", "", "", "reset", "reset", "reset", "reset", "reset", "reset"], None),  # fewer than 10 attempts
    (["", "", ""] + ["reset"] * 6, None),
    (["", "", ""] + ["reset"] * 7, 30),  # 7 of 10
    ([""] * 4 + ["reset"] * 9, None),  # 9 of 13
    ([""] * 100, None),
]


@pytest.mark.parametrize(("errors", "pause"), OUTCOMES)
def test_when_an_endpoint_is_paused(errors: list[str], pause: float | None) -> None:
    assert pause_of(after(*errors)) == pause


def test_old_failures_are_forgotten_after_the_window() -> None:
    health = after(*[""] * 3, *["reset"] * 6)
    later = NOW + breaker.WINDOW + SECOND
    assert pause_of(after("", "reset", "reset", "reset", health=health, at=later)) is None


def test_pauses_double_up_to_a_quarter_of_an_hour() -> None:
    health = after(*["dns"] * 10)
    pauses: list[float] = []
    while len(pauses) < 7:
        pauses.append(health.pause_seconds)
        assert health.paused_until is not None
        after("dns", health=health, at=health.paused_until)
    assert pauses == [30, 60, 120, 240, 480, 900, 900]
    assert health.paused_at == NOW + 9 * SECOND / 1000


def test_what_was_under_way_when_a_pause_began_neither_ends_nor_prolongs_it() -> None:
    health = after(*["dns"] * 10)
    until = health.paused_until
    began = NOW - SECOND
    for error in ("dns", ""):
        breaker.note(health, error=error, duration_ms=100, began=began, now=NOW + SECOND, pace=1)
    assert (health.paused_until, health.pause_seconds) == (until, 30)


def test_a_success_ends_the_pause_and_all_is_forgotten() -> None:
    health = after(*["dns"] * 10)
    after("", "dns", health=health, at=NOW + 31 * SECOND)
    assert (health.paused_at, health.paused_until, health.pause_seconds) == (None, None, 0)
    assert (health.failures, health.failing_since) == (1, NOW + 31.001 * SECOND)


def test_pace_shortens_pauses() -> None:
    assert after(*["dns"] * 10, pace=100).paused_until == NOW + 9 * SECOND / 1000 + 0.3 * SECOND


@pytest.mark.parametrize(
    ("failures", "days", "hopeless"), [(10, 5, True), (9, 5, False), (10, 4.999, False), (500, 30, True)]
)
def test_when_an_endpoint_is_given_up(failures: int, days: float, hopeless: bool) -> None:
    health = after(*["reset"] * failures)
    assert breaker.is_hopeless(health, NOW + timedelta(days=days)) is hopeless


def test_one_success_in_five_days_is_hope() -> None:
    health = after("", *["reset"] * 50, at=NOW + timedelta(days=2), health=after(*["reset"] * 50))
    assert not breaker.is_hopeless(health, NOW + timedelta(days=6))


def test_latency_is_a_moving_average() -> None:
    health = Health()
    for duration_ms in (100, 500, 500):
        breaker.note(health, error="", duration_ms=duration_ms, began=NOW, now=NOW, pace=1)
    assert health.latency_ms == 275


# --- in the queue


def note(lease: Lease, answer: Answer, at: datetime) -> None:
    notes.note([Result(lease, answer, began=at, ended=at)])


def pause(endpoint: Endpoint, until: datetime) -> None:
    Health.objects.update_or_create(
        endpoint=endpoint, defaults={"paused_at": NOW, "paused_until": until, "pause_seconds": 30}
    )


@pytest.fixture
def paused(shop: Shop, db: None) -> Endpoint:
    """An endpoint that is paused for 30 seconds, with 20 deliveries due."""
    endpoint = make_endpoint(shop)
    publish(shop, 20)
    pause(endpoint, NOW + 30 * SECOND)
    return endpoint


def test_no_attempt_is_used_up_by_a_pause(paused: Endpoint) -> None:
    assert claim(100, now=NOW + 29 * SECOND) == []
    assert set(Delivery.objects.values_list("state", "attempts")) == {("pending", 0)}


def test_after_a_pause_one_delivery_at_a_time_tries(paused: Endpoint) -> None:
    (probe,) = claim(100, now=NOW + 30 * SECOND)
    assert claim(100, now=NOW + 30 * SECOND) == []
    note(probe, FAILED, NOW + 30 * SECOND)
    assert claim(100, now=NOW + 89 * SECOND) == []
    (probe,) = claim(100, now=NOW + 90 * SECOND)
    note(probe, OK, NOW + 90 * SECOND)
    assert len(claim(100, now=NOW + 90 * SECOND)) > 1


def test_a_paused_endpoint_can_be_tested_by_hand(shop: Shop, paused: Endpoint) -> None:
    replays.test(merchant=shop.merchant, webhook_id=paused.id, now=NOW + SECOND)
    replays.test(merchant=shop.merchant, webhook_id=paused.id, now=NOW + SECOND)
    (by_hand,) = claim(100, now=NOW + SECOND)
    assert by_hand.trigger == "manual"
    note(by_hand, FAILED, NOW + SECOND)
    assert Health.objects.get().paused_until == NOW + 30 * SECOND
    (by_hand,) = claim(100, now=NOW + SECOND)
    note(by_hand, OK, NOW + SECOND)
    assert len(claim(100, now=NOW + SECOND)) > 1


def test_what_is_sent_by_hand_does_not_wait_for_a_backlog(shop: Shop, db: None) -> None:
    endpoint = make_endpoint(shop)
    publish(shop, 50, at=NOW - timedelta(hours=1))
    replays.test(merchant=shop.merchant, webhook_id=endpoint.id, now=NOW)
    assert "manual" in {lease.trigger for lease in claim(100, now=NOW)}


@pytest.mark.parametrize("change", [{"status": "active"}, {"url": "https://shop.example/mended"}])
def test_a_merchant_who_mends_an_endpoint_need_not_wait(
    shop: Shop, paused: Endpoint, change: dict[str, Any], settings: Settings
) -> None:
    settings.WEBHOOK_PROBE = "off"
    endpoints.change(merchant=shop.merchant, webhook_id=paused.id, now=NOW, **change)
    (first,) = claim(100, now=NOW)
    note(first, OK, NOW)
    assert len(claim(100, now=NOW)) > 1


@pytest.mark.parametrize("said", [replace(FAILED, status=410, error="http_4xx"), FAILED])
def test_what_was_said_before_an_endpoint_was_mended_does_not_count(
    shop: Shop, said: Answer, settings: Settings, db: None
) -> None:
    settings.WEBHOOK_PROBE = "off"
    endpoint = make_endpoint(shop, latency_ms=20)
    publish(shop, 20)
    leases = claim(100, now=NOW)
    endpoints.change(
        merchant=shop.merchant, webhook_id=endpoint.id, now=NOW + SECOND, url="https://shop.example/mended"
    )
    notes.note([Result(lease, said, began=NOW, ended=NOW + 2 * SECOND) for lease in leases])
    endpoint.refresh_from_db()
    assert (endpoint.status, endpoint.health.failures, endpoint.health.paused_at) == ("active", 0, None)


@pytest.mark.usefixtures("loopback", "db")
def test_a_dead_endpoint_is_asked_ten_times_then_left_alone(shop: Shop, receiver: Receiver) -> None:
    receiver.on("/hook", Reply(status=503))
    make_endpoint(shop, receiver.url())
    publish(shop, 200)
    begun = deliveries.drain(now=lambda: NOW)
    assert 10 <= begun < 10 + IN_FLIGHT
    assert len(receiver.requests) == begun == Attempt.objects.count()
    assert Delivery.objects.filter(attempts=0).count() == 200 - begun


@pytest.mark.usefixtures("loopback", "db")
def test_an_endpoint_that_failed_for_five_days_is_disabled_and_its_events_are_held(
    shop: Shop, receiver: Receiver
) -> None:
    receiver.on("/hook", Reply(status=404))
    endpoint = make_endpoint(shop, receiver.url())
    publish(shop, 30)
    now = NOW
    while Endpoint.objects.get().status == "active":
        deliveries.drain(now=moment(now))
        now += timedelta(hours=1)
    assert timedelta(days=5) <= now - NOW <= timedelta(days=5, hours=2)
    endpoint.refresh_from_db()
    assert endpoint.disabled_reason == "failing"
    assert set(Delivery.objects.values_list("state", flat=True)) <= {"held", "failed"}
    receiver.on("/hook", Reply())
    told = set(Delivery.objects.filter(state="held").values_list("event_id", flat=True))
    publish(shop, at=now)
    endpoints.change(merchant=shop.merchant, webhook_id=endpoint.id, now=now, status="active")
    replays.replay(merchant=shop.merchant, webhook_id=endpoint.id, since=NOW, now=now)
    deliveries.drain(now=moment(now))
    assert told and set(Delivery.objects.values_list("state", flat=True)) == {"succeeded"}


def moment(now: datetime) -> Callable[[], datetime]:
    return lambda: now
