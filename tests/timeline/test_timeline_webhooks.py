"""Webhook deliveries in the timeline: attempts, redeliveries, replays, held and dropped deliveries."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from config.celery import app
from core import clock as our_clock, request_context
from tests.conftest import SandboxBankClient, Shop
from tests.staff_acts import acts_of_staff, run_act
from tests.timeline.builders import entries, key_of, last_entries, only_entry, types
from tests.webhook_receiver import Receiver, Reply
from tests.webhooks.api_calls import list_deliveries, redeliver, replay, webhook_path
from tests.webhooks.builders import PAYMENT_SUCCEEDED, make_endpoint
from tests.webhooks.conftest import loopback, receiver
from webhooks import endpoints, tasks
from webhooks.models import DisabledReason, Endpoint

__all__ = ["loopback", "receiver"]
pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("loopback")]
REQUEST_ID_HEADER = {"X-Request-Id": "till-3.0042"}


@pytest.fixture
def endpoint(shop: Shop, receiver: Receiver) -> Endpoint:
    return make_endpoint(shop, receiver.url(), events=[PAYMENT_SUCCEEDED])


def paid(shop: Shop, bank: SandboxBankClient) -> str:
    code = shop.qr_code()
    bank.notify(code)
    return str(code["payment_id"])


def drain(clock: Any) -> str:
    """Post due deliveries and return the id of the task."""
    clock.shift(1)
    task_id = str(app.tasks[tasks.drain.name].apply(throw=True).id)
    clock.shift(1)
    return task_id


def test_resend_entry_has_actor_and_request_id(
    shop: Shop, bank: SandboxBankClient, endpoint: Endpoint, clock: Any
) -> None:
    payment_id = paid(shop, bank)
    task_id = drain(clock)
    (shown,) = list_deliveries(shop, endpoint)
    redelivered = redeliver(shop, endpoint, shown["delivery_id"], **REQUEST_ID_HEADER).json()
    drain(clock)
    assert last_entries(shop, payment_id, 3) == [
        ("webhook.attempt", "clock", task_id),
        ("webhook.resend", key_of(shop), "till-3.0042"),
        ("webhook.attempt", key_of(shop), "till-3.0042"),
    ]
    again = only_entry(shop, payment_id, "webhook.resend")["details"]
    assert (again["delivery_id"], again["webhook_id"]) == (redelivered["delivery_id"], endpoint.id)


def test_resend_entry_is_shown_before_the_attempt(
    shop: Shop, bank: SandboxBankClient, endpoint: Endpoint, clock: Any
) -> None:
    payment_id = paid(shop, bank)
    clock.shift(1)
    redeliver(shop, endpoint, list_deliveries(shop, endpoint)[0]["delivery_id"])
    assert types(shop, payment_id)[-1] == "webhook.resend"


def test_replay_entry_has_actor_and_attempts_have_clock(
    shop: Shop, bank: SandboxBankClient, endpoint: Endpoint, receiver: Receiver, clock: Any
) -> None:
    receiver.on("/hook", Reply(status=410), Reply())
    payment_id = paid(shop, bank)
    first = drain(clock)
    shop.patch(webhook_path(endpoint), {"status": "active"})
    assert (
        replay(shop, endpoint, our_clock.now() - timedelta(hours=1), **REQUEST_ID_HEADER).json()["replayed"]
        == 1
    )
    second = drain(clock)
    assert last_entries(shop, payment_id, 3) == [
        ("webhook.attempt", "clock", first),
        ("webhook.resend", key_of(shop), "till-3.0042"),
        ("webhook.attempt", "clock", second),
    ]


def test_replay_of_event_before_webhook_has_actor(
    shop: Shop, bank: SandboxBankClient, receiver: Receiver, clock: Any
) -> None:
    payment_id = paid(shop, bank)
    clock.shift(1)
    replay(
        shop, make_endpoint(shop, receiver.url()), our_clock.now() - timedelta(hours=1), **REQUEST_ID_HEADER
    )
    assert last_entries(shop, payment_id, 1) == [("webhook.resend", key_of(shop), "till-3.0042")]


def test_replay_by_staff_has_staff_as_actor(
    shop: Shop, admin_client: Client, bank: SandboxBankClient, endpoint: Endpoint, clock: Any
) -> None:
    payment_id = paid(shop, bank)
    for action in ("disable", "enable", "replay"):
        clock.shift(1)
        run_act(admin_client, Endpoint, endpoint.id, action)
    request_id = acts_of_staff().latest("id").request_id
    assert last_entries(shop, payment_id, 1) == [("webhook.resend", "staff", request_id)]
    page = admin_client.get(reverse("admin:payments_payment_change", args=[payment_id])).content.decode()
    assert "webhook.resend" in page and "staff:admin" in page


@pytest.mark.parametrize("is_settled", [False, True])
def test_event_for_disabled_webhook_is_held_from_creation(
    shop: Shop, bank: SandboxBankClient, endpoint: Endpoint, clock: Any, is_settled: bool
) -> None:
    shop.patch(webhook_path(endpoint), {"status": "disabled"})
    clock.shift(60)
    payment_id, happened_at = paid(shop, bank), our_clock.iso(our_clock.now())
    clock.shift(60)
    if is_settled:
        shop.patch(webhook_path(endpoint), {"status": "active"})
    shown = only_entry(shop, payment_id, "webhook.held")
    assert (shown["at"], shown["actor"]) == (happened_at, "clock")
    assert shown["summary"] == "payment.succeeded is held for a replay: its merchant disabled the webhook."
    assert (shown["details"]["reason"], shown["details"]["webhook_id"]) == ("merchant", endpoint.id)


def test_attempted_delivery_is_held_from_disabling(
    shop: Shop, bank: SandboxBankClient, endpoint: Endpoint, receiver: Receiver, clock: Any
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


def test_later_disabling_does_not_change_held_at(
    shop: Shop, bank: SandboxBankClient, endpoint: Endpoint, clock: Any
) -> None:
    payment_id = paid(shop, bank)
    disabled = []
    for status in ("disabled", "active", "disabled"):
        clock.shift(60)
        response = shop.patch(webhook_path(endpoint), {"status": status})
        disabled.append((our_clock.iso(our_clock.now()), key_of(shop), response.headers["X-Request-Id"]))
    held = only_entry(shop, payment_id, "webhook.held")
    assert (held["at"], held["actor"], held["request_id"]) == disabled[0]


def test_disabling_without_recorded_actor_has_no_actor(
    shop: Shop, bank: SandboxBankClient, endpoint: Endpoint, clock: Any
) -> None:
    payment_id = paid(shop, bank)
    clock.shift(60)
    request_context.begin()  # as in the time before
    endpoints.disable(endpoint_id=endpoint.id, reason=DisabledReason.MERCHANT, now=our_clock.now())
    held = only_entry(shop, payment_id, "webhook.held")
    assert (held["actor"], held["request_id"]) == (None, None)


def test_replayed_delivery_is_not_held(
    shop: Shop, bank: SandboxBankClient, endpoint: Endpoint, clock: Any
) -> None:
    payment_id = paid(shop, bank)
    for status in ("disabled", "active"):
        clock.shift(1)
        shop.patch(webhook_path(endpoint), {"status": status})
    assert types(shop, payment_id)[-1] == "webhook.held"
    replay(shop, endpoint, our_clock.now() - timedelta(hours=1))
    assert "webhook.held" not in types(shop, payment_id)


@pytest.mark.parametrize("reason", ["deleted", "disabled"])
def test_dropped_delivery_is_shown_with_reason(
    shop: Shop, bank: SandboxBankClient, endpoint: Endpoint, clock: Any, reason: str
) -> None:
    payment_id = paid(shop, bank)
    drain(clock)
    redeliver(shop, endpoint, list_deliveries(shop, endpoint)[0]["delivery_id"])
    clock.shift(1)
    if reason == "deleted":
        response = shop.delete(webhook_path(endpoint))
    else:
        response = shop.patch(webhook_path(endpoint), {"status": "disabled"})
        clock.shift(1)
        shop.delete(webhook_path(endpoint))
    shown = only_entry(shop, payment_id, "webhook.dropped")
    assert shown["summary"] == f"payment.succeeded is not sent: the webhook was {reason}."
    assert (shown["actor"], shown["request_id"]) == (key_of(shop), response.headers["X-Request-Id"])
    assert shown["details"]["reason"] == reason


def test_webhooks_of_other_merchant_are_not_shown(
    shop: Shop, other_shop: Shop, bank: SandboxBankClient, endpoint: Endpoint, clock: Any
) -> None:
    payment_id = paid(shop, bank)
    other = make_endpoint(other_shop, events=[PAYMENT_SUCCEEDED])
    paid(other_shop, bank)
    shop.patch(webhook_path(other), {"status": "disabled"})
    other_shop.patch(webhook_path(other), {"status": "disabled"})
    assert types(shop, payment_id) == ["payment.pending", "bank.notification", "payment.succeeded"]
