"""A replay sends the events that a webhook missed, each once."""

from datetime import timedelta
from typing import Any

import pytest
from pytest_django import Settings

from tests.conftest import Shop
from tests.webhook_receiver import Receiver, Reply
from tests.webhooks.api_calls import LATER, drain, error_code, redeliver, replay, webhook_path
from tests.webhooks.builders import NOW, PAYMENT_SUCCEEDED, make_endpoint, only_delivery, publish
from webhooks import redelivery
from webhooks.models import Delivery, Event

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loopback", "frozen")]


@pytest.mark.slow
def test_held_events_are_sent_only_by_replay(shop: Shop, receiver: Receiver) -> None:
    endpoint = make_endpoint(shop, receiver.url(), status="disabled")
    publish(shop, 3)
    shop.patch(webhook_path(endpoint), {"status": "active"})
    assert drain() == 0
    answer = replay(shop, endpoint)
    assert (answer.status_code, answer.json()) == (200, {"replayed": 3, "has_more": False})
    assert drain() == 3
    assert replay(shop, endpoint).json()["replayed"] == 0


@pytest.mark.slow
def test_replay_restarts_schedule_of_failed_delivery(shop: Shop, receiver: Receiver) -> None:
    receiver.on("/hook", Reply(status=500), Reply(status=200))
    endpoint = make_endpoint(shop, receiver.url())
    publish(shop)
    Delivery.objects.update(state="failed", attempt_count=10, finished_at=NOW)
    assert replay(shop, endpoint).json()["replayed"] == 1
    drain()
    assert (only_delivery().state, only_delivery().attempt_count) == ("pending", 1)
    drain(LATER + timedelta(hours=1))
    assert only_delivery().state == "succeeded"


def test_replay_sends_events_from_before_the_webhook(shop: Shop, other_shop: Shop) -> None:
    publish(shop)
    publish(shop, type="payment.failed")
    publish(other_shop)
    endpoint = make_endpoint(shop)
    assert replay(shop, endpoint).json()["replayed"] == 1
    assert only_delivery().event.merchant_id == shop.merchant.id
    assert (only_delivery().event.type, only_delivery().state) == (PAYMENT_SUCCEEDED, "pending")


def test_replay_skips_succeeded_pending_and_older_events(shop: Shop) -> None:
    endpoint = make_endpoint(shop)
    publish(shop, 3)
    publish(shop, at=NOW - timedelta(milliseconds=1))
    taken, resent, waiting, older = Delivery.objects.order_by("-created_at", "id")
    Delivery.objects.filter(pk=taken.pk).update(state="succeeded")
    Delivery.objects.filter(pk__in=[resent.pk, older.pk]).update(state="failed")
    redeliver(shop, endpoint, resent.pk)
    Delivery.objects.filter(manual_number=1).update(state="succeeded")
    before = list(Delivery.objects.order_by("pk").values())
    assert replay(shop, endpoint).json() == {"replayed": 0, "has_more": False}
    assert list(Delivery.objects.order_by("pk").values()) == before
    assert waiting.state == "pending"


@pytest.mark.slow
def test_replay_continues_after_batch_limit(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(redelivery, "MAX_REPLAYED", 2)
    endpoint = make_endpoint(shop, status="disabled")
    publish(shop, 3)
    shop.patch(webhook_path(endpoint), {"status": "active"})
    assert replay(shop, endpoint).json() == {"replayed": 2, "has_more": True}
    assert replay(shop, endpoint).json() == {"replayed": 1, "has_more": False}


def test_replay_under_idempotency_key_runs_once(shop: Shop) -> None:
    publish(shop)
    endpoint = make_endpoint(shop)
    first, again = (replay(shop, endpoint, key="once") for _ in range(2))
    assert (first.json()["replayed"], again.content) == (1, first.content)
    assert again["Idempotent-Replayed"] == "true"


def test_replay_skips_test_events(shop: Shop) -> None:
    endpoint = make_endpoint(shop)
    shop.post(webhook_path(endpoint, "test"))
    Delivery.objects.update(state="failed")
    assert replay(shop, endpoint).json()["replayed"] == 0
    assert Event.objects.count() == Delivery.objects.count() == 1


@pytest.mark.parametrize(
    "since", [None, 7, True, [], {}, "", "yesterday", "2026-11-21T10", "2026-13-01", "2569-11-21"]
)
def test_replay_since_is_a_date_or_an_instant(shop: Shop, since: Any) -> None:
    answer = shop.post(webhook_path(make_endpoint(shop), "replay"), {"since": since})
    assert error_code(answer) == (400, "invalid_since")


def test_replay_without_since_is_refused(shop: Shop) -> None:
    assert error_code(shop.post(webhook_path(make_endpoint(shop), "replay"), {})) == (400, "invalid_since")


def test_replay_begins_with_the_deliveries_that_are_kept(shop: Shop, settings: Settings) -> None:
    """An event whose delivery was deleted may have been accepted."""
    settings.WEBHOOK_DELIVERY_RETENTION_DAYS = 30
    endpoint = make_endpoint(shop)
    for days in (31, 29):
        publish(shop, at=NOW - timedelta(days=days))
    Delivery.objects.all().delete()
    answer = replay(shop, endpoint, NOW - timedelta(days=90))
    assert answer.json() == {"replayed": 1, "has_more": False}
    assert only_delivery().event.created_at == NOW - timedelta(days=29)
