"""A failing endpoint is paused, which uses no attempts, and disabled after five days."""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta

import pytest
from pytest_django import Settings

from tests.conftest import Shop
from tests.webhook_receiver import Receiver, Reply
from tests.webhooks.builders import FAILED, NOW, SUCCEEDED, claim, make_endpoint, publish, record_result
from webhooks import endpoints, redelivery
from webhooks.delivery import attempt_log, circuit_breaker, dispatcher
from webhooks.delivery.attempt_log import DeliveryResult
from webhooks.delivery.queue import MAX_IN_FLIGHT
from webhooks.http.client import PostResult
from webhooks.models import Delivery, DeliveryAttempt, Endpoint, EndpointHealth

SECOND = timedelta(seconds=1)


def after(*errors: str, health: EndpointHealth | None = None, at: datetime = NOW) -> EndpointHealth:
    """The health after attempts with these errors, one each millisecond."""
    health = health or EndpointHealth()
    for number, error in enumerate(errors):
        when = at + number * SECOND / 1000
        circuit_breaker.record_attempt(health, error=error, duration_ms=100, started_at=when, now=when)
    return health


def pause_of(health: EndpointHealth) -> float | None:
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
def test_endpoint_is_paused_after_consecutive_failures_or_failure_rate(
    errors: list[str], pause: float | None
) -> None:
    assert pause_of(after(*errors)) == pause


def test_endpoint_failures_before_the_window_do_not_count() -> None:
    health = after(*[""] * 3, *["reset"] * 6)
    later = NOW + circuit_breaker.WINDOW + SECOND
    assert pause_of(after("", "reset", "reset", "reset", health=health, at=later)) is None


def test_endpoint_pause_doubles_up_to_15_minutes() -> None:
    health = after(*["dns"] * 10)
    pauses: list[float] = []
    while len(pauses) < 7:
        pauses.append(health.pause_seconds)
        assert health.paused_until is not None
        after("dns", health=health, at=health.paused_until)
    assert pauses == [30, 60, 120, 240, 480, 900, 900]
    assert health.paused_at == NOW + 9 * SECOND / 1000


def test_attempt_in_flight_does_not_change_an_endpoint_pause() -> None:
    health = after(*["dns"] * 10)
    until = health.paused_until
    began = NOW - SECOND
    for error in ("dns", ""):
        circuit_breaker.record_attempt(
            health, error=error, duration_ms=100, started_at=began, now=NOW + SECOND
        )
    assert (health.paused_until, health.pause_seconds) == (until, 30)


def test_success_ends_endpoint_pause_and_resets_failures() -> None:
    health = after(*["dns"] * 10)
    after("", "dns", health=health, at=NOW + 31 * SECOND)
    assert (health.paused_at, health.paused_until, health.pause_seconds) == (None, None, 0)
    assert (health.consecutive_failures, health.failing_since) == (1, NOW + 31.001 * SECOND)


def test_webhook_speedup_divides_endpoint_pauses(settings: Settings) -> None:
    settings.SPEEDUP = 100
    assert after(*["dns"] * 10).paused_until == NOW + 9 * SECOND / 1000 + 0.3 * SECOND


@pytest.mark.parametrize(
    ("consecutive_failures", "days", "expected"),
    [(10, 5, True), (9, 5, False), (10, 4.999, False), (500, 30, True)],
)
def test_endpoint_failing_for_five_days_should_be_disabled(
    consecutive_failures: int, days: float, expected: bool
) -> None:
    health = after(*["reset"] * consecutive_failures)
    assert circuit_breaker.should_disable(health, NOW + timedelta(days=days)) is expected


def test_success_within_five_days_prevents_disabling() -> None:
    health = after("", *["reset"] * 50, at=NOW + timedelta(days=2), health=after(*["reset"] * 50))
    assert not circuit_breaker.should_disable(health, NOW + timedelta(days=6))


def test_endpoint_latency_is_a_moving_average() -> None:
    health = EndpointHealth()
    for duration_ms in (100, 500, 500):
        circuit_breaker.record_attempt(health, error="", duration_ms=duration_ms, started_at=NOW, now=NOW)
    assert health.latency_ms == 275


# --- in the queue


def pause(endpoint: Endpoint, until: datetime) -> None:
    EndpointHealth.objects.update_or_create(
        endpoint=endpoint, defaults={"paused_at": NOW, "paused_until": until, "pause_seconds": 30}
    )


@pytest.fixture
def paused(shop: Shop, db: None) -> Endpoint:
    """An endpoint that is paused for 30 seconds, with 20 deliveries due."""
    endpoint = make_endpoint(shop)
    publish(shop, 20)
    pause(endpoint, NOW + 30 * SECOND)
    return endpoint


def test_paused_delivery_counts_no_attempt(paused: Endpoint) -> None:
    assert claim(100, now=NOW + 29 * SECOND) == []
    assert set(Delivery.objects.values_list("state", "attempt_count")) == {("pending", 0)}


def test_endpoint_gets_one_delivery_at_a_time_after_a_pause(paused: Endpoint) -> None:
    (probe,) = claim(100, now=NOW + 30 * SECOND)
    assert claim(100, now=NOW + 30 * SECOND) == []
    record_result(probe, FAILED, NOW + 30 * SECOND)
    assert claim(100, now=NOW + 89 * SECOND) == []
    (probe,) = claim(100, now=NOW + 90 * SECOND)
    record_result(probe, SUCCEEDED, NOW + 90 * SECOND)
    assert len(claim(100, now=NOW + 90 * SECOND)) > 1


@pytest.mark.slow
def test_paused_endpoint_gets_manual_test(shop: Shop, paused: Endpoint) -> None:
    redelivery.test(paused, now=NOW + SECOND)
    redelivery.test(paused, now=NOW + SECOND)
    (manual,) = claim(100, now=NOW + SECOND)
    assert manual.trigger == "manual"
    record_result(manual, FAILED, NOW + SECOND)
    assert EndpointHealth.objects.get().paused_until == NOW + 30 * SECOND
    (manual,) = claim(100, now=NOW + SECOND)
    record_result(manual, SUCCEEDED, NOW + SECOND)
    assert len(claim(100, now=NOW + SECOND)) > 1


def test_manual_delivery_is_sent_before_the_backlog(shop: Shop, db: None) -> None:
    endpoint = make_endpoint(shop)
    publish(shop, 50, at=NOW - timedelta(hours=1))
    redelivery.test(endpoint, now=NOW)
    assert "manual" in {lease.trigger for lease in claim(100, now=NOW)}


@pytest.mark.parametrize(("url", "status"), [("", "active"), ("https://shop.example/mended", None)])
def test_changed_or_enabled_endpoint_gets_deliveries_at_once(
    shop: Shop, paused: Endpoint, url: str, status: str | None, settings: Settings
) -> None:
    settings.WEBHOOK_PROBE = "off"
    moved = endpoints.move(paused, url or paused.url, now=NOW)
    endpoints.update(paused, now=NOW, moved=moved, status=status)
    (first,) = claim(100, now=NOW)
    record_result(first, SUCCEEDED, NOW)
    assert len(claim(100, now=NOW)) > 1


@pytest.mark.parametrize("result", [replace(FAILED, status=410, error="http_4xx"), FAILED])
@pytest.mark.slow
def test_result_from_before_a_webhook_change_does_not_count(
    shop: Shop, result: PostResult, settings: Settings, db: None
) -> None:
    settings.WEBHOOK_PROBE = "off"
    endpoint = make_endpoint(shop, latency_ms=20)
    publish(shop, 20)
    leases = claim(100, now=NOW)
    moved = endpoints.move(endpoint, "https://shop.example/mended", now=NOW)
    endpoints.update(endpoint, now=NOW + SECOND, moved=moved)
    attempt_log.record(
        [DeliveryResult(lease, result, started_at=NOW, ended_at=NOW + 2 * SECOND) for lease in leases]
    )
    endpoint.refresh_from_db()
    assert (endpoint.status, endpoint.health.consecutive_failures, endpoint.health.paused_at) == (
        "active",
        0,
        None,
    )


@pytest.mark.usefixtures("loopback", "db")
@pytest.mark.slow
def test_endpoint_that_always_fails_gets_ten_attempts_before_pause(shop: Shop, receiver: Receiver) -> None:
    receiver.on("/hook", Reply(status=503))
    make_endpoint(shop, receiver.url())
    publish(shop, 200)
    started = dispatcher.drain(now=lambda: NOW)
    assert 10 <= started < 10 + MAX_IN_FLIGHT
    assert len(receiver.requests) == started == DeliveryAttempt.objects.count()
    assert Delivery.objects.filter(attempt_count=0).count() == 200 - started


@pytest.mark.usefixtures("loopback", "db")
@pytest.mark.slow
def test_endpoint_failing_for_five_days_is_disabled_and_events_are_held(
    shop: Shop, receiver: Receiver
) -> None:
    receiver.on("/hook", Reply(status=404))
    endpoint = make_endpoint(shop, receiver.url())
    publish(shop, 30)
    now = NOW
    while Endpoint.objects.get().status == "active":
        dispatcher.drain(now=moment(now))
        now += timedelta(hours=1)
    assert timedelta(days=5) <= now - NOW <= timedelta(days=5, hours=2)
    endpoint.refresh_from_db()
    assert endpoint.disabled_reason == "failing"
    assert set(Delivery.objects.values_list("state", flat=True)) <= {"held", "failed"}
    receiver.on("/hook", Reply())
    held_ids = set(Delivery.objects.filter(state="held").values_list("event_id", flat=True))
    publish(shop, at=now)
    endpoints.update(endpoint, now=now, status="active")
    redelivery.replay(endpoint, since=NOW, now=now)
    dispatcher.drain(now=moment(now))
    assert held_ids and set(Delivery.objects.values_list("state", flat=True)) == {"succeeded"}


def moment(now: datetime) -> Callable[[], datetime]:
    return lambda: now
