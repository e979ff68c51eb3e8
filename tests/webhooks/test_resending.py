"""A webhook is tested, and told of one event once more; the schedule goes on as if nothing had been asked."""

from datetime import timedelta

import pytest
from standardwebhooks import Webhook

from tests.conftest import Shop
from tests.receiver import Receiver, Reply
from tests.threads import at_once
from tests.webhooks.asking import LATER, drain, error_code, listed, path_of, redeliver, states
from tests.webhooks.cast import NOW, SECRET, claim, make_endpoint, only_delivery, publish
from webhooks import deliveries, endpoints, leases
from webhooks.models import Attempt, Delivery, DisabledReason

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loopback", "frozen")]


def test_a_test_is_a_signed_ping_that_is_sent_once(shop: Shop, receiver: Receiver) -> None:
    receiver.on("/hook", Reply(status=500))
    endpoint = make_endpoint(shop, receiver.url())
    asked = shop.post(path_of(endpoint, "test"))
    assert asked.status_code == 200
    assert (asked.json()["event"], asked.json()["state"]) == ("webhook.ping", "pending")
    assert deliveries.drain() == 1
    (ping,) = receiver.requests
    message = Webhook(SECRET).verify(ping.body, ping.headers)
    assert (message["event"], message["data"]) == ("webhook.ping", {"webhook_id": endpoint.id})
    (told,) = listed(shop, endpoint)
    assert (told["delivery_id"], told["state"]) == (asked.json()["delivery_id"], "failed")
    assert Attempt.objects.get().trigger == "manual"
    assert drain(NOW + timedelta(days=9)) == 0


@pytest.mark.parametrize(
    ("tail", "code"), [("test", "webhook_not_testable"), ("replay", "webhook_not_replayable")]
)
def test_a_disabled_webhook_is_sent_nothing(shop: Shop, tail: str, code: str) -> None:
    endpoint = make_endpoint(shop, status="disabled")
    publish(shop)
    assert error_code(shop.post(path_of(endpoint, tail), {"since": "2026-11-21"})) == (400, code)
    answer = redeliver(shop, endpoint, only_delivery().id)
    assert error_code(answer) == (400, "delivery_not_redeliverable")
    assert Delivery.objects.count() == 1


def test_a_resend_is_one_attempt_and_leaves_the_schedule_alone(shop: Shop, receiver: Receiver) -> None:
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
    assert (resent.state, resent.attempts) == ("failed", 1)
    assert Delivery.objects.filter(resend=0).values().get() == before
    first, second = receiver.requests
    assert first.body == second.body
    assert first.headers["webhook-id"] == second.headers["webhook-id"]


def test_the_automatic_delivery_is_untouched_by_a_resend(shop: Shop, receiver: Receiver) -> None:
    endpoint = make_endpoint(shop, receiver.url())
    publish(shop, at=NOW + timedelta(hours=1))
    before = Delivery.objects.values().get()
    redeliver(shop, endpoint, before["id"])
    assert deliveries.drain() == 1
    assert Delivery.objects.filter(resend=0).values().get() == before
    assert listed(shop, endpoint, "?state=succeeded")[0]["trigger"] == "manual"


def test_what_succeeded_can_be_sent_once_more_any_number_of_times(shop: Shop, receiver: Receiver) -> None:
    endpoint = make_endpoint(shop, receiver.url())
    publish(shop)
    drain()
    for _ in range(2):
        assert redeliver(shop, endpoint, listed(shop, endpoint)[0]["delivery_id"]).status_code == 200
    assert sorted(Delivery.objects.values_list("resend", flat=True)) == [0, 1, 2]
    assert drain() == 2
    assert len({request.headers["webhook-id"] for request in receiver.requests}) == 1


def test_a_resend_under_a_key_happens_once(shop: Shop) -> None:
    endpoint = make_endpoint(shop)
    publish(shop)
    first, again = (redeliver(shop, endpoint, only_delivery_id(), key="once") for _ in range(2))
    assert (again.content, again["Idempotent-Replayed"]) == (first.content, "true")
    assert Delivery.objects.count() == 2


def only_delivery_id() -> str:
    return str(Delivery.objects.get(resend=0).id)


@pytest.mark.django_db(transaction=True)
def test_two_resends_at_once_get_a_number_each(shop: Shop) -> None:
    endpoint = make_endpoint(shop)
    publish(shop)
    told = only_delivery().id
    answers = at_once(*[lambda: redeliver(shop, endpoint, told)] * 2)
    assert [answer.status_code for answer in answers] == [200, 200]
    assert sorted(Delivery.objects.values_list("resend", flat=True)) == [0, 1, 2]


def test_a_delivery_belongs_to_its_webhook(shop: Shop, rival: Shop) -> None:
    endpoint, other, theirs = make_endpoint(shop), make_endpoint(shop, events=[]), make_endpoint(rival)
    publish(shop)
    told = only_delivery().id
    assert error_code(redeliver(shop, other, told)) == (404, "delivery_not_found")
    assert error_code(redeliver(rival, theirs, told)) == (404, "delivery_not_found")
    assert error_code(redeliver(rival, endpoint, told)) == (404, "webhook_not_found")
    assert error_code(redeliver(shop, endpoint, "dlv_x")) == (404, "delivery_not_found")


def test_a_resend_that_its_worker_lost_is_not_tried_again(shop: Shop) -> None:
    endpoint = make_endpoint(shop)
    publish(shop, at=LATER + timedelta(days=1))
    resent = redeliver(shop, endpoint, only_delivery().id).json()["delivery_id"]
    assert len(claim(1, now=LATER)) == 1
    Delivery.objects.filter(pk=resent).update(lease_until=NOW - timedelta(days=900))
    leases.reclaim(now=LATER)
    assert Delivery.objects.get(pk=resent).state == "failed"
    assert (Attempt.objects.get().trigger, Attempt.objects.get().error) == ("manual", "worker_lost")


def test_disabling_ends_resends_and_holds_the_rest(shop: Shop) -> None:
    endpoint = make_endpoint(shop)
    publish(shop)
    redeliver(shop, endpoint, only_delivery().id)
    endpoints.disable(endpoint_id=endpoint.id, reason=DisabledReason.GONE, now=NOW)
    assert states() == ["failed", "held"]
