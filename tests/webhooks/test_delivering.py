"""What is due is posted, signed, and tried again by the schedule; every attempt is kept."""

from datetime import datetime, timedelta

import pytest
from django.db import OperationalError
from pytest_django import Settings
from standardwebhooks import Webhook

from core import clock, vault
from tests.conftest import Shop
from tests.receiver import Receiver, Reply
from tests.webhooks.cast import NOW, SECRET, make_endpoint, only_delivery, publish
from webhooks import deliveries
from webhooks.leases import IN_FLIGHT, QUICK_MS
from webhooks.models import Attempt, Delivery, Endpoint, EndpointStatus, Event

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loopback")]


def drain(now: datetime = NOW) -> int:
    return deliveries.drain(now=lambda: now)


def test_a_message_passes_the_verification_of_an_independent_library(shop: Shop, receiver: Receiver) -> None:
    make_endpoint(shop, receiver.url())
    publish(shop, at=clock.now())
    assert deliveries.drain() == 1
    (request,) = receiver.requests
    assert Webhook(SECRET).verify(request.body, request.headers) == request.json
    assert request.headers["webhook-id"] == request.json["event_id"] == Event.objects.get().id
    assert request.headers["content-type"] == "application/json"
    assert (only_delivery().state, only_delivery().attempts) == ("succeeded", 1)


def test_while_a_secret_is_renewed_both_sign(shop: Shop, receiver: Receiver) -> None:
    endpoint = make_endpoint(shop, receiver.url(), secret="the new one")
    endpoint.previous_secret_sealed = vault.seal(SECRET, context=endpoint.id)
    endpoint.previous_secret_until = NOW + timedelta(hours=24)
    endpoint.save()
    publish(shop)
    drain()
    publish(shop, at=NOW + timedelta(hours=24))
    drain(NOW + timedelta(hours=24))
    signatures = [request.headers["webhook-signature"].split() for request in receiver.requests]
    assert [len(each) for each in signatures] == [2, 1]


def test_an_attempt_is_kept_with_all_that_came_back(shop: Shop, receiver: Receiver) -> None:
    receiver.on("/hook", Reply(status=503, body=b"down\x00"))
    make_endpoint(shop, receiver.url())
    publish(shop)
    drain()
    attempt = Attempt.objects.get()
    assert (attempt.number, attempt.trigger, attempt.started_at) == (1, "auto", NOW)
    assert (attempt.status, attempt.error, attempt.excerpt) == (503, "http_5xx", "down")
    assert attempt.peer == "127.0.0.1"
    assert attempt.duration_ms is not None


def test_failures_are_tried_again_by_the_schedule_until_the_tenth(shop: Shop, receiver: Receiver) -> None:
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
    assert (delivery.state, delivery.attempts, delivery.finished_at) == ("failed", 10, now)
    assert drain(now + timedelta(days=30)) == 0
    expected = [5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400]
    assert waits == pytest.approx(expected, rel=0.2)
    assert list(Attempt.objects.order_by("id").values_list("number", flat=True)) == list(range(1, 11))


def test_every_attempt_sends_the_same_bytes_under_the_same_id(shop: Shop, receiver: Receiver) -> None:
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


def test_pace_makes_the_waits_shorter(shop: Shop, receiver: Receiver, settings: Settings) -> None:
    settings.WEBHOOK_PACE = 100
    receiver.on("/hook", Reply(status=500))
    make_endpoint(shop, receiver.url())
    publish(shop)
    drain()
    assert timedelta(milliseconds=40) <= only_delivery().due_at - NOW <= timedelta(milliseconds=60)


def test_a_wait_that_the_endpoint_asks_for_is_kept(shop: Shop, receiver: Receiver) -> None:
    receiver.on("/hook", Reply(status=429, headers={"Retry-After": "7"}))
    make_endpoint(shop, receiver.url())
    publish(shop)
    drain()
    assert only_delivery().due_at - NOW == timedelta(seconds=7)


@pytest.mark.parametrize("status", [200, 201, 202, 204, 299])
def test_any_2xx_is_success(shop: Shop, receiver: Receiver, status: int) -> None:
    receiver.on("/hook", Reply(status=status, body=b""))
    make_endpoint(shop, receiver.url())
    publish(shop)
    drain()
    assert only_delivery().state == "succeeded"


def test_a_redirect_is_a_failure_and_not_followed(shop: Shop, receiver: Receiver) -> None:
    receiver.on("/hook", Reply(status=307, headers={"Location": receiver.url("/elsewhere")}))
    make_endpoint(shop, receiver.url())
    publish(shop)
    drain()
    assert [request.path for request in receiver.requests] == ["/hook"]
    assert only_delivery().state == "pending"


def test_an_endpoint_that_says_gone_is_disabled_and_its_events_are_held(
    shop: Shop, receiver: Receiver
) -> None:
    receiver.on("/hook", Reply(status=410))
    endpoint = make_endpoint(shop, receiver.url(), latency_ms=QUICK_MS + 1)
    publish(shop, 2 * IN_FLIGHT)
    assert drain() == IN_FLIGHT
    endpoint.refresh_from_db()
    assert (endpoint.status, endpoint.disabled_reason) == (EndpointStatus.DISABLED, "gone")
    assert set(Delivery.objects.values_list("state", flat=True)) == {"held"}
    publish(shop)
    assert drain() == 0


def test_what_comes_back_after_the_first_word_gone_is_held_too(shop: Shop, receiver: Receiver) -> None:
    receiver.on("/hook", Reply(status=410), Reply(status=410, delay=20 * deliveries.GATHER_SECONDS))
    endpoint = make_endpoint(shop, receiver.url(), latency_ms=QUICK_MS + 1)
    publish(shop, IN_FLIGHT)
    assert drain() == IN_FLIGHT
    assert Delivery.objects.filter(state="held").count() == IN_FLIGHT
    assert endpoint.acts.filter(act="disabled").count() == 1


def test_an_endpoint_that_cannot_be_disabled_now_costs_the_others_nothing(
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
    assert Attempt.objects.count() == 2
    assert drain(NOW + timedelta(seconds=10)) == 1
    assert Endpoint.objects.filter(status="disabled").count() == 1


def test_a_blocked_address_is_final(shop: Shop, receiver: Receiver, settings: Settings) -> None:
    make_endpoint(shop, receiver.url())
    settings.WEBHOOK_ALLOWED_NETWORKS = []
    publish(shop)
    drain()
    assert (only_delivery().state, Attempt.objects.get().error) == ("failed", "blocked")
    assert receiver.requests == []


def test_a_live_merchant_cannot_be_told_inside_a_network(shop: Shop, receiver: Receiver) -> None:
    shop.merchant.mode, shop.merchant.bank = "live", "scb"
    shop.merchant.save()
    make_endpoint(shop, receiver.url())
    publish(shop)
    drain()
    assert Attempt.objects.get().error == "blocked"


def test_an_endpoint_that_hangs_costs_its_time_and_no_more(
    shop: Shop, receiver: Receiver, settings: Settings
) -> None:
    settings.WEBHOOK_SECONDS = 0.2
    receiver.on("/hook", Reply(hangs=True))
    make_endpoint(shop, receiver.url())
    publish(shop)
    drain()
    attempt = Attempt.objects.get()
    assert (attempt.error, attempt.status) == ("timeout", None)
    assert 200 <= (attempt.duration_ms or 0) < 15_000
    assert only_delivery().state == "pending"
