"""A merchant sees how a webhook was told, and has it told again: a test, one event, all that was missed."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine
from standardwebhooks import Webhook

from core.clock import iso
from tests.conftest import Shop
from tests.receiver import Receiver, Reply
from tests.threads import at_once
from tests.webhooks.cast import NOW, PAID, SECRET, make_endpoint, only_delivery, publish
from webhooks import deliveries, endpoints, leases, replays
from webhooks.models import Attempt, Delivery, Endpoint, Event

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loopback")]
LATER = NOW + timedelta(days=1)


@pytest.fixture(autouse=True)
def frozen() -> Iterator[None]:
    with time_machine.travel(NOW, tick=False):
        yield


def path_of(endpoint: Endpoint, *tail: str) -> str:
    return "/".join(["/Thai/v1/webhooks", endpoint.id, *tail])


def error_code(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def listed(shop: Shop, endpoint: Endpoint, query: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = shop.get(path_of(endpoint, "deliveries") + query).json()["deliveries"]
    return found


def redeliver(shop: Shop, endpoint: Endpoint, delivery_id: str, **options: Any) -> Any:
    return shop.post(path_of(endpoint, "deliveries", delivery_id, "redeliver"), **options)


def replay(shop: Shop, endpoint: Endpoint, since: datetime = NOW, **options: Any) -> Any:
    return shop.post(path_of(endpoint, "replay"), {"since": iso(since)}, **options)


def drain(now: datetime = LATER) -> int:
    return deliveries.drain(now=lambda: now)


def states() -> list[str]:
    return sorted(Delivery.objects.values_list("state", flat=True))


# --- events and deliveries ----------------------------------------------------------------------------


def test_an_event_reads_as_it_was_sent(shop: Shop, rival: Shop, receiver: Receiver) -> None:
    make_endpoint(shop, receiver.url())
    publish(shop, note="ส้มตำ")
    drain()
    (sent,) = receiver.requests
    path = f"/Thai/v1/events/{sent.json['event_id']}"
    assert shop.get(path).content == sent.body
    assert error_code(rival.get(path)) == (404, "event_not_found")
    assert error_code(shop.get("/v1/events/evt_x")) == (404, "event_not_found")


def test_events_are_listed_newest_first_by_type_and_time(shop: Shop) -> None:
    publish(shop)
    publish(shop, type="payment.failed", at=NOW + timedelta(days=1))
    both = shop.get("/v1/events").json()
    assert (both["total"], [each["event"] for each in both["events"]]) == (2, ["payment.failed", PAID])
    assert shop.get(f"/v1/events?event={PAID}").json()["events"] == both["events"][1:]
    assert shop.get("/v1/events?start_date=2026-11-22").json()["events"] == both["events"][:1]
    assert error_code(shop.get("/v1/events?event=payment.paid")) == (400, "invalid_parameters")


def test_a_delivery_tells_of_every_attempt(shop: Shop, receiver: Receiver) -> None:
    receiver.on("/hook", Reply(status=503, body=b"x" * 600), Reply(status=204, body=b""))
    endpoint = make_endpoint(shop, receiver.url())
    publish(shop)
    drain(NOW)
    (waiting,) = listed(shop, endpoint)
    assert (waiting["state"], waiting["trigger"], waiting["finished_at"]) == ("pending", "auto", None)
    assert waiting["next_attempt_at"] > iso(NOW)
    drain()
    (taken,) = listed(shop, endpoint)
    assert (taken["state"], taken["next_attempt_at"], taken["finished_at"]) == ("succeeded", None, iso(LATER))
    first, second = taken["attempts"]
    assert (first["number"], first["http_status"], first["error"]) == (1, 503, "http_5xx")
    assert first["response"] == "x" * 500
    assert (second["number"], second["http_status"], second["error"]) == (2, 204, None)


def test_deliveries_are_found_by_state_and_event(shop: Shop) -> None:
    endpoint = make_endpoint(shop, events=[PAID, "payment.failed"])
    publish(shop)
    publish(shop, type="payment.failed")
    leases.claim(now=NOW)
    assert len(listed(shop, endpoint, "?state=pending")) == 2
    assert listed(shop, endpoint, "?state=held") == []
    (failed,) = listed(shop, endpoint, "?event=payment.failed")
    assert failed["event"] == "payment.failed"
    answer = shop.get(path_of(endpoint, "deliveries") + "?state=leased")
    assert error_code(answer) == (400, "invalid_parameters")


# --- test ---------------------------------------------------------------------------------------------


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


# --- redeliver ----------------------------------------------------------------------------------------


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
    assert len(leases.claim(now=LATER)) == 1
    Delivery.objects.filter(pk=resent).update(lease_until=NOW - timedelta(days=900))
    leases.reclaim(now=LATER)
    assert Delivery.objects.get(pk=resent).state == "failed"
    assert (Attempt.objects.get().trigger, Attempt.objects.get().error) == ("manual", "worker_lost")


def test_disabling_ends_resends_and_holds_the_rest(shop: Shop) -> None:
    endpoint = make_endpoint(shop)
    publish(shop)
    redeliver(shop, endpoint, only_delivery().id)
    endpoints.disable(endpoint_id=endpoint.id, reason="gone", now=NOW)
    assert states() == ["failed", "held"]


# --- replay -------------------------------------------------------------------------------------------


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
