"""Manual deliveries: a test or one event again. The schedule of other deliveries does not change."""

from datetime import timedelta

import pytest
from django.test import Client
from standardwebhooks import Webhook

from tests.concurrency import run_concurrently
from tests.conftest import Shop
from tests.error_messages import check_error
from tests.webhook_receiver import Receiver, Reply
from tests.webhooks.api_calls import (
    LATER,
    delivery_states,
    drain,
    error_code,
    key_of,
    list_deliveries,
    redeliver,
    replay,
    webhook_path,
)
from tests.webhooks.builders import NOW, SECRET, claim, make_endpoint, only_delivery, publish
from webhooks import endpoints
from webhooks.delivery import dispatcher, queue
from webhooks.models import Delivery, DeliveryAttempt, DeliveryLease, DisabledReason

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loopback", "frozen")]


def test_test_request_sends_one_signed_ping(shop: Shop, receiver: Receiver) -> None:
    receiver.on("/hook", Reply(status=500))
    endpoint = make_endpoint(shop, receiver.url())
    asked = shop.post(webhook_path(endpoint, "test"))
    assert asked.status_code == 200
    assert (asked.json()["event"], asked.json()["state"]) == ("webhook.ping", "pending")
    assert dispatcher.drain() == 1
    (ping,) = receiver.requests
    message = Webhook(SECRET).verify(ping.body, ping.headers)
    assert (message["event"], message["data"]) == ("webhook.ping", {"webhook_id": endpoint.id})
    (delivery,) = list_deliveries(shop, endpoint)
    assert (delivery["delivery_id"], delivery["state"]) == (asked.json()["delivery_id"], "failed")
    assert DeliveryAttempt.objects.get().trigger == "manual"
    assert drain(NOW + timedelta(days=9)) == 0


@pytest.mark.parametrize(
    ("tail", "code"), [("test", "webhook_not_testable"), ("replay", "webhook_not_replayable")]
)
def test_disabled_webhook_refuses_test_redelivery_and_replay(shop: Shop, tail: str, code: str) -> None:
    endpoint = make_endpoint(shop, status="disabled")
    publish(shop)
    assert error_code(shop.post(webhook_path(endpoint, tail), {"since": "2026-11-21"})) == (400, code)
    answer = redeliver(shop, endpoint, only_delivery().id)
    assert error_code(answer) == (400, "delivery_not_redeliverable")
    check_error(answer.json(), "delivery_not_redeliverable")
    assert Delivery.objects.count() == 1


@pytest.mark.slow
def test_redelivery_is_one_attempt_and_keeps_schedule(shop: Shop, receiver: Receiver) -> None:
    receiver.on("/hook", Reply(status=500))
    endpoint = make_endpoint(shop, receiver.url())
    publish(shop)
    drain(NOW)
    before = Delivery.objects.values().get()
    again = redeliver(shop, endpoint, before["id"]).json()
    assert (again["trigger"], again["state"], again["event_id"]) == ("manual", "pending", before["event_id"])
    resent = Delivery.objects.get(pk=again["delivery_id"])
    assert drain(NOW) == 1
    resent.refresh_from_db()
    assert (resent.state, resent.attempt_count) == ("failed", 1)
    assert Delivery.objects.filter(manual_number=0).values().get() == before
    first, second = receiver.requests
    assert first.body == second.body
    assert first.headers["webhook-id"] == second.headers["webhook-id"]


@pytest.mark.slow
def test_redelivery_does_not_change_scheduled_delivery(shop: Shop, receiver: Receiver) -> None:
    endpoint = make_endpoint(shop, receiver.url())
    publish(shop, at=NOW + timedelta(hours=1))
    before = Delivery.objects.values().get()
    redeliver(shop, endpoint, before["id"])
    assert dispatcher.drain() == 1
    assert Delivery.objects.filter(manual_number=0).values().get() == before
    assert list_deliveries(shop, endpoint, "?state=succeeded")[0]["trigger"] == "manual"


@pytest.mark.slow
def test_succeeded_delivery_can_be_redelivered_repeatedly(shop: Shop, receiver: Receiver) -> None:
    endpoint = make_endpoint(shop, receiver.url())
    publish(shop)
    drain()
    for _ in range(2):
        assert redeliver(shop, endpoint, list_deliveries(shop, endpoint)[0]["delivery_id"]).status_code == 200
    assert sorted(Delivery.objects.values_list("manual_number", flat=True)) == [0, 1, 2]
    assert drain() == 2
    assert len({request.headers["webhook-id"] for request in receiver.requests}) == 1


def test_redelivery_under_idempotency_key_runs_once(shop: Shop) -> None:
    endpoint = make_endpoint(shop)
    publish(shop)
    first, again = (redeliver(shop, endpoint, only_delivery_id(), key="once") for _ in range(2))
    assert (again.content, again["Idempotent-Replayed"]) == (first.content, "true")
    assert Delivery.objects.count() == 2


def only_delivery_id() -> str:
    return str(Delivery.objects.get(manual_number=0).id)


@pytest.mark.django_db(transaction=True)
@pytest.mark.slow
def test_concurrent_redeliveries_get_different_numbers(shop: Shop) -> None:
    endpoint = make_endpoint(shop)
    publish(shop)
    delivery_id = only_delivery().id
    answers = run_concurrently(*[lambda: redeliver(shop, endpoint, delivery_id)] * 2)
    assert [answer.status_code for answer in answers] == [200, 200]
    assert sorted(Delivery.objects.values_list("manual_number", flat=True)) == [0, 1, 2]


@pytest.mark.slow
def test_delivery_of_another_webhook_is_not_found(shop: Shop, other_shop: Shop) -> None:
    endpoint, other, theirs = make_endpoint(shop), make_endpoint(shop, events=[]), make_endpoint(other_shop)
    publish(shop)
    delivery_id = only_delivery().id
    assert error_code(redeliver(shop, other, delivery_id)) == (404, "delivery_not_found")
    assert error_code(redeliver(other_shop, theirs, delivery_id)) == (404, "delivery_not_found")
    assert error_code(redeliver(other_shop, endpoint, delivery_id)) == (404, "webhook_not_found")
    assert error_code(redeliver(shop, endpoint, "dlv_x")) == (404, "delivery_not_found")


@pytest.mark.slow
def test_manual_delivery_of_lost_worker_is_not_retried(shop: Shop) -> None:
    endpoint = make_endpoint(shop)
    publish(shop, at=LATER + timedelta(days=1))
    resent = redeliver(shop, endpoint, only_delivery().id).json()["delivery_id"]
    assert len(claim(1, now=LATER)) == 1
    DeliveryLease.objects.filter(delivery_id=resent).update(lease_until=NOW - timedelta(days=900))
    queue.reclaim_expired(now=LATER)
    assert Delivery.objects.get(pk=resent).state == "failed"
    assert (DeliveryAttempt.objects.get().trigger, DeliveryAttempt.objects.get().error) == (
        "manual",
        "worker_lost",
    )


def test_disabling_fails_manual_deliveries_and_holds_others(shop: Shop) -> None:
    endpoint = make_endpoint(shop)
    publish(shop)
    redeliver(shop, endpoint, only_delivery().id)
    endpoints.disable(endpoint_id=endpoint.id, reason=DisabledReason.GONE, now=NOW)
    assert delivery_states() == ["failed", "held"]


# --- who requested it

REQUEST_ID_HEADER = {"X-Request-Id": "till-3.0042"}


def actor_and_request_id(manual_number: int = 0) -> tuple[str, str]:
    delivery = Delivery.objects.get(manual_number=manual_number)
    return delivery.actor, delivery.request_id


def test_scheduled_delivery_has_no_actor(shop: Shop) -> None:
    make_endpoint(shop)
    publish(shop)
    assert (actor_and_request_id(), only_delivery().requested_at) == (("", ""), None)


def test_redelivery_records_api_key_and_request_id(shop: Shop) -> None:
    endpoint = make_endpoint(shop)
    publish(shop)
    redeliver(shop, endpoint, only_delivery().id, **REQUEST_ID_HEADER)
    assert actor_and_request_id(manual_number=1) == (key_of(shop), "till-3.0042")
    assert actor_and_request_id() == ("", "")


@pytest.mark.slow
def test_page_of_a_delivery_shows_staff_the_actor(shop: Shop, admin_client: Client) -> None:
    endpoint = make_endpoint(shop)
    publish(shop)
    redeliver(shop, endpoint, only_delivery().id)
    delivery = Delivery.objects.get(manual_number=1)
    page = admin_client.get(f"/admin/webhooks/delivery/{delivery.id}/change/").content.decode()
    assert key_of(shop) in page


@pytest.mark.slow
def test_delivery_records_actor_of_last_replay(shop: Shop) -> None:
    endpoint = make_endpoint(shop)
    publish(shop)
    for request_id in ("first", "second"):
        Delivery.objects.update(state="failed")
        replay(shop, endpoint, NOW, **{"X-Request-Id": request_id})
        assert actor_and_request_id() == (key_of(shop), request_id)


def test_test_request_records_api_key(shop: Shop) -> None:
    shop.post(webhook_path(make_endpoint(shop), "test"), **REQUEST_ID_HEADER)
    assert actor_and_request_id(manual_number=1) == (key_of(shop), "till-3.0042")
