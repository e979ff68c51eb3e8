"""What a webhook missed is sent to it again: once it is asked for, and nothing twice."""

from datetime import timedelta
from typing import Any

import pytest

from tests.conftest import Shop
from tests.receiver import Receiver, Reply
from tests.webhooks.asking import LATER, drain, error_code, path_of, redeliver, replay
from tests.webhooks.cast import NOW, PAID, make_endpoint, only_delivery, publish
from webhooks import replays
from webhooks.models import Delivery, Event

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loopback", "frozen")]


def test_what_was_held_is_sent_by_a_replay_and_not_before(shop: Shop, receiver: Receiver) -> None:
    endpoint = make_endpoint(shop, receiver.url(), status="disabled")
    publish(shop, 3)
    shop.patch(path_of(endpoint), {"status": "active"})
    assert drain() == 0
    answer = replay(shop, endpoint)
    assert (answer.status_code, answer.json()) == (200, {"replayed": 3, "has_more": False})
    assert drain() == 3
    assert replay(shop, endpoint).json()["replayed"] == 0


def test_what_failed_starts_its_schedule_anew(shop: Shop, receiver: Receiver) -> None:
    receiver.on("/hook", Reply(status=500), Reply(status=200))
    endpoint = make_endpoint(shop, receiver.url())
    publish(shop)
    Delivery.objects.update(state="failed", attempts=10, finished_at=NOW)
    assert replay(shop, endpoint).json()["replayed"] == 1
    drain()
    assert (only_delivery().state, only_delivery().attempts) == ("pending", 1)
    drain(LATER + timedelta(hours=1))
    assert only_delivery().state == "succeeded"


def test_events_from_before_the_webhook_are_sent_if_it_wants_them(shop: Shop, rival: Shop) -> None:
    publish(shop)
    publish(shop, type="payment.failed")
    publish(rival)
    endpoint = make_endpoint(shop)
    assert replay(shop, endpoint).json()["replayed"] == 1
    assert only_delivery().event.merchant_id == shop.merchant.id
    assert (only_delivery().event.type, only_delivery().state) == (PAID, "pending")


def test_what_was_taken_or_waits_or_is_older_is_left_alone(shop: Shop) -> None:
    endpoint = make_endpoint(shop)
    publish(shop, 3)
    publish(shop, at=NOW - timedelta(milliseconds=1))
    taken, resent, waiting, older = Delivery.objects.order_by("-created_at", "id")
    Delivery.objects.filter(pk=taken.pk).update(state="succeeded")
    Delivery.objects.filter(pk__in=[resent.pk, older.pk]).update(state="failed")
    redeliver(shop, endpoint, resent.pk)
    Delivery.objects.filter(resend=1).update(state="succeeded")
    before = list(Delivery.objects.order_by("pk").values())
    assert replay(shop, endpoint).json() == {"replayed": 0, "has_more": False}
    assert list(Delivery.objects.order_by("pk").values()) == before
    assert waiting.state == "pending"


def test_a_long_replay_goes_on_where_it_stopped(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replays, "REPLAYED_AT_ONCE", 2)
    endpoint = make_endpoint(shop, status="disabled")
    publish(shop, 3)
    shop.patch(path_of(endpoint), {"status": "active"})
    assert replay(shop, endpoint).json() == {"replayed": 2, "has_more": True}
    assert replay(shop, endpoint).json() == {"replayed": 1, "has_more": False}


def test_a_replay_under_a_key_happens_once(shop: Shop) -> None:
    publish(shop)
    endpoint = make_endpoint(shop)
    first, again = (replay(shop, endpoint, key="once") for _ in range(2))
    assert (first.json()["replayed"], again.content) == (1, first.content)
    assert again["Idempotent-Replayed"] == "true"


def test_a_test_is_not_replayed(shop: Shop) -> None:
    endpoint = make_endpoint(shop)
    shop.post(path_of(endpoint, "test"))
    Delivery.objects.update(state="failed")
    assert replay(shop, endpoint).json()["replayed"] == 0
    assert Event.objects.count() == Delivery.objects.count() == 1


@pytest.mark.parametrize(
    "since", [None, 7, True, [], {}, "", "yesterday", "2026-11-21T10:00:00", "2026-13-01"]
)
def test_since_is_a_date_or_an_instant(shop: Shop, since: Any) -> None:
    answer = shop.post(path_of(make_endpoint(shop), "replay"), {"since": since})
    assert error_code(answer) == (400, "invalid_since")


def test_since_is_required(shop: Shop) -> None:
    assert error_code(shop.post(path_of(make_endpoint(shop), "replay"), {})) == (400, "invalid_since")
