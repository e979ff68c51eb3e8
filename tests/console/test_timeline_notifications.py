"""Whom the merchant's webhooks were told, in a payment's timeline: also on request, also what is kept."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from config.celery import app
from core import clock as our_clock
from core import origin
from tests.conftest import BankCaller, Shop
from tests.console.timeline_cast import entries, only, types
from tests.receiver import Receiver, Reply
from tests.webhooks.asking import listed, path_of, redeliver, replay
from tests.webhooks.cast import PAID, make_endpoint
from tests.webhooks.conftest import loopback, receiver
from webhooks import endpoints, tasks
from webhooks.models import DisabledReason, Endpoint

__all__ = ["loopback", "receiver"]
pytestmark = pytest.mark.usefixtures("loopback")
TILL = {"X-Request-Id": "till-3.0042"}


@pytest.fixture
def endpoint(shop: Shop, receiver: Receiver) -> Endpoint:
    return make_endpoint(shop, receiver.url(), events=[PAID])


def paid(shop: Shop, bank: BankCaller) -> str:
    code = shop.qr_code()
    bank.tell(code)
    return str(code["payment_id"])


def drain(clock: Any) -> str:
    """What is due is posted; returns the id of the task that did it."""
    clock.shift(1)
    task_id = str(app.tasks[tasks.drain.name].apply(throw=True).id)
    clock.shift(1)
    return task_id


def key_of(shop: Shop) -> str:
    return f"key:{shop.merchant.keys.get().public_id}"


def last(shop: Shop, payment_id: str, count: int) -> list[tuple[str, str | None, str | None]]:
    told = entries(shop, payment_id)[-count:]
    return [(entry["type"], entry["actor"], entry["request_id"]) for entry in told]


def test_who_asks_for_a_resend_is_named_with_the_request(
    shop: Shop, bank: BankCaller, endpoint: Endpoint, clock: Any
) -> None:
    payment_id = paid(shop, bank)
    task_id = drain(clock)
    (told,) = listed(shop, endpoint)
    asked = redeliver(shop, endpoint, told["delivery_id"], **TILL).json()
    drain(clock)
    assert last(shop, payment_id, 3) == [
        ("webhook.attempt", "clock", task_id),
        ("webhook.resend", key_of(shop), "till-3.0042"),
        ("webhook.attempt", key_of(shop), "till-3.0042"),
    ]
    again = only(shop, payment_id, "webhook.resend")["details"]
    assert (again["delivery_id"], again["webhook_id"]) == (asked["delivery_id"], endpoint.id)


def test_a_resend_is_told_before_it_is_tried(
    shop: Shop, bank: BankCaller, endpoint: Endpoint, clock: Any
) -> None:
    payment_id = paid(shop, bank)
    clock.shift(1)
    redeliver(shop, endpoint, listed(shop, endpoint)[0]["delivery_id"])
    assert types(shop, payment_id)[-1] == "webhook.resend"


def test_a_replay_is_whose_it_is_and_its_attempts_are_the_clocks(
    shop: Shop, bank: BankCaller, endpoint: Endpoint, receiver: Receiver, clock: Any
) -> None:
    receiver.on("/hook", Reply(status=410), Reply())
    payment_id = paid(shop, bank)
    first = drain(clock)
    shop.patch(path_of(endpoint), {"status": "active"})
    assert replay(shop, endpoint, our_clock.now() - timedelta(hours=1), **TILL).json()["replayed"] == 1
    second = drain(clock)
    assert last(shop, payment_id, 3) == [
        ("webhook.attempt", "clock", first),
        ("webhook.resend", key_of(shop), "till-3.0042"),
        ("webhook.attempt", "clock", second),
    ]


def test_an_event_from_before_the_webhook_is_told_to_it_by_whoever_replays(
    shop: Shop, bank: BankCaller, receiver: Receiver, clock: Any
) -> None:
    payment_id = paid(shop, bank)
    clock.shift(1)
    replay(shop, make_endpoint(shop, receiver.url()), our_clock.now() - timedelta(hours=1), **TILL)
    assert last(shop, payment_id, 1) == [("webhook.resend", key_of(shop), "till-3.0042")]


def test_a_replay_by_staff_is_theirs(
    shop: Shop, admin_client: Client, bank: BankCaller, endpoint: Endpoint, clock: Any
) -> None:
    payment_id = paid(shop, bank)
    for action in ("disable", "enable", "replay_held"):
        clock.shift(1)
        asked = {"action": action, "_selected_action": [endpoint.id]}
        answer = admin_client.post(reverse("admin:webhooks_endpoint_changelist"), asked)
    assert last(shop, payment_id, 1) == [("webhook.resend", "staff", answer.headers["X-Request-Id"])]
    page = admin_client.get(reverse("admin:payments_payment_change", args=[payment_id])).content.decode()
    assert "webhook.resend" in page and "staff:admin" in page


@pytest.mark.parametrize("is_settled", [False, True])
def test_what_a_disabled_webhook_is_not_told_is_held_from_the_beginning(
    shop: Shop, bank: BankCaller, endpoint: Endpoint, clock: Any, is_settled: bool
) -> None:
    shop.patch(path_of(endpoint), {"status": "disabled"})
    clock.shift(60)
    payment_id, happened_at = paid(shop, bank), our_clock.iso(our_clock.now())
    clock.shift(60)
    if is_settled:
        shop.patch(path_of(endpoint), {"status": "active"})
    told = only(shop, payment_id, "webhook.held")
    assert (told["at"], told["actor"]) == (happened_at, "clock")
    assert told["summary"] == "payment.succeeded is kept for a replay: its merchant disabled the webhook."
    assert (told["details"]["reason"], told["details"]["webhook_id"]) == ("merchant", endpoint.id)


def test_what_was_tried_is_held_from_when_the_webhook_was_disabled(
    shop: Shop, bank: BankCaller, endpoint: Endpoint, receiver: Receiver, clock: Any
) -> None:
    receiver.on("/hook", Reply(status=500), Reply(status=410))
    payment_id = paid(shop, bank)
    drain(clock)
    clock.shift(60)
    task_id = drain(clock)
    *_, first, second, held = entries(shop, payment_id)
    assert [each["type"] for each in (first, second, held)] == [*["webhook.attempt"] * 2, "webhook.held"]
    assert first["at"] < second["at"] <= held["at"]
    assert (held["details"]["reason"], held["actor"]) == ("gone", "clock")
    assert second["request_id"] == held["request_id"] == task_id


def test_a_later_disabling_does_not_change_since_when_something_is_held(
    shop: Shop, bank: BankCaller, endpoint: Endpoint, clock: Any
) -> None:
    payment_id = paid(shop, bank)
    disabled = []
    for status in ("disabled", "active", "disabled"):
        clock.shift(60)
        answer = shop.patch(path_of(endpoint), {"status": status})
        disabled.append((our_clock.iso(our_clock.now()), key_of(shop), answer.headers["X-Request-Id"]))
    held = only(shop, payment_id, "webhook.held")
    assert (held["at"], held["actor"], held["request_id"]) == disabled[0]


def test_the_clock_is_not_blamed_where_nobody_kept_who_disabled_a_webhook(
    shop: Shop, bank: BankCaller, endpoint: Endpoint, clock: Any
) -> None:
    payment_id = paid(shop, bank)
    clock.shift(60)
    origin.begin()  # as in the time before
    endpoints.disable(endpoint_id=endpoint.id, reason=DisabledReason.MERCHANT, now=our_clock.now())
    held = only(shop, payment_id, "webhook.held")
    assert (held["actor"], held["request_id"]) == (None, None)


def test_what_is_replayed_is_held_no_more(
    shop: Shop, bank: BankCaller, endpoint: Endpoint, clock: Any
) -> None:
    payment_id = paid(shop, bank)
    for status in ("disabled", "active"):
        clock.shift(1)
        shop.patch(path_of(endpoint), {"status": status})
    assert types(shop, payment_id)[-1] == "webhook.held"
    replay(shop, endpoint, our_clock.now() - timedelta(hours=1))
    assert "webhook.held" not in types(shop, payment_id)


@pytest.mark.parametrize("reason", ["deleted", "disabled"])
def test_what_is_not_sent_because_the_webhook_is_gone_is_told(
    shop: Shop, bank: BankCaller, endpoint: Endpoint, clock: Any, reason: str
) -> None:
    payment_id = paid(shop, bank)
    drain(clock)
    redeliver(shop, endpoint, listed(shop, endpoint)[0]["delivery_id"])
    clock.shift(1)
    if reason == "deleted":
        answer = shop.delete(path_of(endpoint))
    else:
        answer = shop.patch(path_of(endpoint), {"status": "disabled"})
        clock.shift(1)
        shop.delete(path_of(endpoint))
    told = only(shop, payment_id, "webhook.dropped")
    assert told["summary"] == f"payment.succeeded is not sent: the webhook was {reason}."
    assert (told["actor"], told["request_id"]) == (key_of(shop), answer.headers["X-Request-Id"])
    assert told["details"]["reason"] == reason


def test_what_a_rival_asks_of_its_webhooks_is_not_ours(
    shop: Shop, rival: Shop, bank: BankCaller, endpoint: Endpoint, clock: Any
) -> None:
    payment_id = paid(shop, bank)
    theirs = make_endpoint(rival, events=[PAID])
    paid(rival, bank)
    shop.patch(path_of(theirs), {"status": "disabled"})
    rival.patch(path_of(theirs), {"status": "disabled"})
    assert types(shop, payment_id) == ["payment.pending", "bank.notice", "payment.succeeded"]
