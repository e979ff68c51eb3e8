"""Due deliveries are signed, posted and retried. Every attempt is stored."""

from datetime import datetime, timedelta

import pytest
from django.db import OperationalError
from pytest_django import Settings
from standardwebhooks import Webhook

from core import clock
from tests.conftest import Shop
from tests.webhook_receiver import Receiver, Reply
from tests.webhooks.builders import NOW, SECRET, make_endpoint, only_delivery, publish
from webhooks.delivery import dispatcher
from webhooks.delivery.queue import MAX_IN_FLIGHT, QUICK_MS
from webhooks.models import Delivery, DeliveryAttempt, Endpoint, EndpointStatus, Event

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loopback")]


def drain(now: datetime = NOW) -> int:
    return dispatcher.drain(now=lambda: now)


@pytest.mark.slow
def test_standard_webhooks_library_verifies_a_delivery(shop: Shop, receiver: Receiver) -> None:
    make_endpoint(shop, receiver.url())
    publish(shop, at=clock.now())
    assert dispatcher.drain() == 1
    (request,) = receiver.requests
    assert Webhook(SECRET).verify(request.body, request.headers) == request.json
    assert request.headers["webhook-id"] == request.json["event_id"] == Event.objects.get().id
    assert request.headers["content-type"] == "application/json"
    assert (only_delivery().state, only_delivery().attempt_count) == ("succeeded", 1)


@pytest.mark.slow
def test_both_webhook_secrets_sign_during_rotation(shop: Shop, receiver: Receiver) -> None:
    endpoint = make_endpoint(shop, receiver.url(), secret="the new one")
    endpoint.set_secrets(endpoint.secret, [(SECRET, NOW + timedelta(hours=24))])
    endpoint.save()
    publish(shop)
    drain()
    publish(shop, at=NOW + timedelta(hours=24))
    drain(NOW + timedelta(hours=24))
    signatures = [request.headers["webhook-signature"].split() for request in receiver.requests]
    assert [len(each) for each in signatures] == [2, 1]


@pytest.mark.slow
def test_attempt_stores_status_error_and_excerpt(shop: Shop, receiver: Receiver) -> None:
    receiver.on("/hook", Reply(status=503, body=b"down\x00"))
    make_endpoint(shop, receiver.url())
    publish(shop)
    drain()
    attempt = DeliveryAttempt.objects.get()
    assert (attempt.number, attempt.trigger, attempt.started_at) == (1, "auto", NOW)
    assert (attempt.status, attempt.error, attempt.excerpt) == (503, "http_5xx", "down")
    assert attempt.peer == "127.0.0.1"
    assert attempt.duration_ms is not None


@pytest.mark.slow
def test_failed_delivery_is_retried_ten_times_by_schedule(shop: Shop, receiver: Receiver) -> None:
    receiver.on("/hook", Reply(status=500))
    make_endpoint(shop, receiver.url())
    publish(shop)
    now, waits = NOW, []
    for _ in range(9):
        assert drain(now) == 1
        due_at = only_delivery().due_at
        assert drain(due_at - timedelta(milliseconds=1)) == 0
        waits.append((due_at - now).total_seconds())
        now = due_at
    assert drain(now) == 1
    delivery = only_delivery()
    assert (delivery.state, delivery.attempt_count, delivery.finished_at) == ("failed", 10, now)
    assert drain(now + timedelta(days=30)) == 0
    expected = [5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400]
    assert waits == pytest.approx(expected, rel=0.2)
    assert list(DeliveryAttempt.objects.order_by("id").values_list("number", flat=True)) == list(range(1, 11))


@pytest.mark.slow
def test_every_delivery_attempt_sends_the_same_body_and_message_id(shop: Shop, receiver: Receiver) -> None:
    receiver.on("/hook", Reply(status=500), Reply(status=204, body=b""))
    make_endpoint(shop, receiver.url())
    publish(shop)
    drain()
    drain(NOW + timedelta(seconds=10))
    first, second = receiver.requests
    assert first.body == second.body
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert int(second.headers["webhook-timestamp"]) == int(first.headers["webhook-timestamp"]) + 10
    assert only_delivery().state == "succeeded"


def test_webhook_speedup_divides_retry_delays_of_a_delivery(
    shop: Shop, receiver: Receiver, settings: Settings
) -> None:
    settings.SPEEDUP = 100
    receiver.on("/hook", Reply(status=500))
    make_endpoint(shop, receiver.url())
    publish(shop)
    drain()
    assert timedelta(milliseconds=40) <= only_delivery().due_at - NOW <= timedelta(milliseconds=60)


def test_retry_after_of_endpoint_is_honoured(shop: Shop, receiver: Receiver) -> None:
    receiver.on("/hook", Reply(status=429, headers={"Retry-After": "7"}))
    make_endpoint(shop, receiver.url())
    publish(shop)
    drain()
    assert only_delivery().due_at - NOW == timedelta(seconds=7)


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_any_2xx_answer_is_a_successful_delivery(shop: Shop, receiver: Receiver, status: int) -> None:
    receiver.on("/hook", Reply(status=status, body=b""))
    make_endpoint(shop, receiver.url())
    publish(shop)
    drain()
    assert only_delivery().state == "succeeded"


def test_redirect_answer_fails_the_delivery_and_is_not_followed(shop: Shop, receiver: Receiver) -> None:
    receiver.on("/hook", Reply(status=307, headers={"Location": receiver.url("/elsewhere")}))
    make_endpoint(shop, receiver.url())
    publish(shop)
    drain()
    assert [request.path for request in receiver.requests] == ["/hook"]
    assert only_delivery().state == "pending"


@pytest.mark.slow
def test_answer_410_disables_endpoint_and_holds_events(shop: Shop, receiver: Receiver) -> None:
    receiver.on("/hook", Reply(status=410))
    endpoint = make_endpoint(shop, receiver.url(), latency_ms=QUICK_MS + 1)
    publish(shop, 2 * MAX_IN_FLIGHT)
    assert drain() == MAX_IN_FLIGHT
    endpoint.refresh_from_db()
    assert (endpoint.status, endpoint.disabled_reason) == (EndpointStatus.DISABLED, "gone")
    assert set(Delivery.objects.values_list("state", flat=True)) == {"held"}
    publish(shop)
    assert drain() == 0


@pytest.mark.slow
def test_deliveries_that_fail_after_answer_410_are_held(shop: Shop, receiver: Receiver) -> None:
    receiver.on("/hook", Reply(status=410), Reply(status=410, delay=20 * dispatcher.RESULT_BATCH_SECONDS))
    endpoint = make_endpoint(shop, receiver.url(), latency_ms=QUICK_MS + 1)
    publish(shop, MAX_IN_FLIGHT)
    assert drain() == MAX_IN_FLIGHT
    assert Delivery.objects.filter(state="held").count() == MAX_IN_FLIGHT
    assert endpoint.actions.filter(type="disabled").count() == 1


def test_failure_to_disable_an_endpoint_does_not_affect_other_deliveries(
    shop: Shop, receiver: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    receiver.on("/hook", Reply(status=410))
    make_endpoint(shop, receiver.url())
    make_endpoint(shop, receiver.url("/other"))
    publish(shop)

    def locked(*_: object) -> None:
        raise OperationalError("lock timeout")

    with monkeypatch.context() as patched:
        patched.setattr("webhooks.endpoints.disable", lambda **_: locked())
        assert drain() == 2
    assert DeliveryAttempt.objects.count() == 2
    assert drain(NOW + timedelta(seconds=10)) == 1
    assert Endpoint.objects.filter(status="disabled").count() == 1


def test_delivery_to_a_blocked_address_is_not_retried(
    shop: Shop, receiver: Receiver, settings: Settings
) -> None:
    make_endpoint(shop, receiver.url())
    settings.WEBHOOK_ALLOWED_NETWORKS = []
    publish(shop)
    drain()
    assert (only_delivery().state, DeliveryAttempt.objects.get().error) == ("failed", "blocked")
    assert receiver.requests == []


def test_live_merchant_cannot_use_internal_address(shop: Shop, receiver: Receiver) -> None:
    shop.merchant.mode, shop.merchant.bank = "live", "scb"
    shop.merchant.save()
    make_endpoint(shop, receiver.url())
    publish(shop)
    drain()
    assert DeliveryAttempt.objects.get().error == "blocked"


@pytest.mark.slow
def test_attempt_to_a_hanging_endpoint_ends_at_the_timeout(
    shop: Shop, receiver: Receiver, settings: Settings
) -> None:
    settings.WEBHOOK_TIMEOUT_SECONDS = 0.2
    receiver.on("/hook", Reply(hangs=True))
    make_endpoint(shop, receiver.url())
    publish(shop)
    drain()
    attempt = DeliveryAttempt.objects.get()
    assert (attempt.error, attempt.status) == ("timeout", None)
    assert 190 <= (attempt.duration_ms or 0) < 15_000  # clocks round
    assert only_delivery().state == "pending"
