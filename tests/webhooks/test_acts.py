"""What happens to a webhook is written down, in the commit in which it happens, and never rewritten."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction

from tests.conftest import Shop
from tests.receiver import Receiver, Reply
from tests.webhooks.cast import NOW, PAID, claim, make_endpoint, publish, set_health
from webhooks import acts, breaker, deliveries, endpoints, notes, replays, settling
from webhooks.client import Answer
from webhooks.models import Act, Delivery, DisabledReason, Endpoint, EndpointAct, Health
from webhooks.notes import Result

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loopback", "frozen")]

OK = Answer(status=200, error="", excerpt="", duration_ms=20, peer="192.0.2.1", retry_after=None)
FAILED = replace(OK, status=None, error="timeout")
STAFF = acts.staff("somsri")


def path_of(endpoint: Endpoint) -> str:
    return f"/Thai/v1/webhooks/{endpoint.id}"


def trail() -> list[tuple[str, str, str]]:
    """What happened, by whom, and why: in order."""
    return list(EndpointAct.objects.order_by("id").values_list("act", "actor", "detail"))


def pause(endpoint: Endpoint) -> None:
    until = NOW + timedelta(seconds=30)
    set_health(endpoint, paused_at=NOW, paused_until=until, pause_seconds=30, failures=10)


def ask(answer: Answer, at: timedelta = timedelta()) -> None:
    """One delivery is claimed and comes back so."""
    (lease,) = claim(1, now=NOW + at)
    notes.note([Result(lease, answer, began=NOW + at, ended=NOW + at)])


def test_a_merchants_acts_are_written_down(shop: Shop, receiver: Receiver) -> None:
    first, second = receiver.url("/first"), receiver.url("/second")
    made = shop.post("/Thai/v1/webhooks", {"url": first, "events": [PAID]}).json()
    path = f"/Thai/v1/webhooks/{made['webhook_id']}"
    for change in (
        {"url": second},
        {"events": ["refund.failed"]},
        {"status": "disabled"},
        {"status": "active"},
    ):
        assert shop.patch(path, change).status_code == 200
    assert shop.post(f"{path}/secret/rotate").status_code == 200
    assert shop.delete(path).status_code == 204
    assert trail() == [
        ("created", "merchant", ""),
        ("url_changed", "merchant", f"{first} → {second}"),
        ("events_changed", "merchant", f"before: {PAID}"),
        ("disabled", "merchant", "merchant"),
        ("enabled", "merchant", ""),
        ("secret_renewed", "merchant", ""),
        ("deleted", "merchant", ""),
    ]
    assert set(EndpointAct.objects.values_list("endpoint", "at")) == {(made["webhook_id"], NOW)}


def test_what_changes_nothing_is_no_act(shop: Shop, receiver: Receiver) -> None:
    endpoint = make_endpoint(shop, receiver.url())
    for change in ({}, {"url": receiver.url()}, {"events": [PAID, PAID]}, {"status": "active"}):
        assert shop.patch(path_of(endpoint), change).status_code == 200
    shop.post(f"{path_of(endpoint)}/secret/rotate", {"secret": endpoint.secret})
    shop.post(f"{path_of(endpoint)}/replay", {"since": "2026-01-01"})
    assert trail() == []


def test_a_webhook_that_is_refused_leaves_no_act(shop: Shop) -> None:
    asked = {"url": "https://10.0.0.1/", "events": [PAID]}
    assert shop.post("/Thai/v1/webhooks", asked).status_code == 422
    assert trail() == []


def test_no_act_without_its_change(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = make_endpoint(shop)
    monkeypatch.setattr(settling, "settle", broken)
    assert shop.delete(path_of(endpoint)).status_code == 500
    assert (trail(), Endpoint.objects.get().deleted_at) == ([], None)


def broken(*_: Any) -> None:
    raise ZeroDivisionError


def test_a_pause_is_written_once_however_often_it_is_prolonged(shop: Shop) -> None:
    make_endpoint(shop)
    publish(shop, 20)
    for _ in range(breaker.FAILURES_IN_A_ROW):
        ask(FAILED)
    ask(FAILED, timedelta(seconds=30))
    assert Health.objects.get().pause_seconds == 60
    ask(OK, timedelta(seconds=90))
    why = "10 failures in a row, last: timeout"
    assert trail() == [("paused", "system", why), ("resumed", "system", "")]


def test_a_pause_because_most_attempts_failed_says_so(shop: Shop) -> None:
    make_endpoint(shop)
    publish(shop, 20)
    for number in range(breaker.ATTEMPTS_IN_WINDOW):
        ask(OK if number in {2, 5, 8} else FAILED)
    assert trail() == [("paused", "system", "7 of 10 attempts within 5 minutes failed, last: timeout")]


def test_a_webhook_that_says_gone_was_disabled_by_the_system(shop: Shop, receiver: Receiver) -> None:
    receiver.on("/hook", Reply(status=410))
    make_endpoint(shop, receiver.url())
    publish(shop, 3)
    deliveries.drain(now=lambda: NOW)
    assert trail() == [("disabled", "system", "gone")]


def test_a_webhook_that_failed_for_days_was_disabled_by_the_system(shop: Shop) -> None:
    endpoint = make_endpoint(shop)
    publish(shop)
    long_ago = NOW - breaker.GIVEN_UP_AFTER
    set_health(endpoint, failures=50, failing_since=long_ago)
    ask(FAILED)
    assert trail()[-1] == ("disabled", "system", "failing")


@pytest.mark.parametrize("change", [{"status": "active"}, {"url": "http://127.0.0.1:1/mended"}])
def test_a_merchant_who_mends_a_webhook_ends_its_pause(
    shop: Shop, receiver: Receiver, change: dict[str, str]
) -> None:
    endpoint = make_endpoint(shop)
    pause(endpoint)
    asked = change | ({"url": receiver.url()} if "url" in change else {})
    assert shop.patch(path_of(endpoint), asked).status_code == 200
    assert trail()[-1] == ("resumed", "merchant", "")


def test_staff_who_click_twice_act_once(shop: Shop) -> None:
    endpoint = make_endpoint(shop)
    publish(shop, 2)
    pause(endpoint)

    def twice(act: Callable[..., object], **options: Any) -> None:
        for _ in range(2):
            act(endpoint_id=endpoint.id, actor=STAFF, now=NOW, **options)

    twice(endpoints.try_now)
    twice(endpoints.disable, reason=DisabledReason.STAFF)
    twice(endpoints.enable)
    twice(replays.replay_held)
    assert trail() == [
        ("tried", STAFF, ""),
        ("disabled", STAFF, "staff"),
        ("resumed", STAFF, ""),
        ("enabled", STAFF, ""),
        ("replayed", STAFF, "events: 2"),
    ]
    assert set(Delivery.objects.values_list("state", "attempts")) == {("pending", 0)}


def test_try_now_lets_one_delivery_try(shop: Shop) -> None:
    endpoint = make_endpoint(shop)
    publish(shop, 5)
    pause(endpoint)
    assert claim(9) == []
    endpoints.try_now(endpoint_id=endpoint.id, actor=STAFF, now=NOW)
    assert len(claim(9)) == 1


def test_only_what_was_held_is_sent_again(shop: Shop) -> None:
    endpoint = make_endpoint(shop, status="disabled")
    publish(shop, 2)
    failed = Delivery.objects.order_by("pk")[0]
    Delivery.objects.filter(pk=failed.pk).update(state="failed", finished_at=NOW)
    endpoints.enable(endpoint_id=endpoint.id, actor=STAFF, now=NOW)
    assert replays.replay_held(endpoint_id=endpoint.id, actor=STAFF, now=NOW) == replays.Replay(1, False)
    failed.refresh_from_db()
    assert failed.state == "failed"


def test_a_deleted_webhook_stays_as_it_is(shop: Shop) -> None:
    endpoint = make_endpoint(shop)
    endpoints.delete(merchant=shop.merchant, webhook_id=endpoint.id, now=NOW)
    endpoints.disable(endpoint_id=endpoint.id, reason=DisabledReason.STAFF, actor=STAFF, now=NOW)
    endpoints.enable(endpoint_id=endpoint.id, actor=STAFF, now=NOW)
    pause(endpoint)
    endpoints.try_now(endpoint_id=endpoint.id, actor=STAFF, now=NOW)
    assert trail() == [("deleted", "merchant", "")]


@pytest.mark.parametrize(
    "sql", ["UPDATE webhooks_endpointact SET actor = 'nobody'", "DELETE FROM webhooks_endpointact"]
)
def test_the_database_refuses_to_rewrite_an_act(shop: Shop, sql: str) -> None:
    acts.note(make_endpoint(shop).id, Act.CREATED, actor=STAFF, at=NOW)
    with (
        pytest.raises(DatabaseError, match="not rewritten"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(sql)
    assert trail() == [("created", STAFF, "")]
