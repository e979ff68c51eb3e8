"""Each change of a webhook is recorded with its actor, in the same commit, and never changed."""

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction

from tests.conftest import Shop
from tests.context import acting_as
from tests.webhook_receiver import Receiver, Reply
from tests.webhooks.api_calls import key_of, webhook_path
from tests.webhooks.builders import (
    FAILED,
    NOW,
    PAYMENT_SUCCEEDED,
    SUCCEEDED,
    claim,
    make_endpoint,
    publish,
    record_result,
    set_health,
)
from webhooks import endpoints, redelivery
from webhooks.delivery import circuit_breaker, dispatcher
from webhooks.http.client import PostResult
from webhooks.models import (
    Delivery,
    DisabledReason,
    Endpoint,
    EndpointAction,
    EndpointActionType,
    EndpointHealth,
)

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loopback", "frozen")]

TIMED_OUT = replace(FAILED, status=None, error="timeout")
STAFF, WORKER = "staff:somsri", "task:webhooks.drain"


def recorded_actions() -> list[tuple[str, str, str]]:
    """Type, actor and detail of all actions, the oldest first."""
    return list(EndpointAction.objects.order_by("id").values_list("type", "actor", "detail"))


def pause(endpoint: Endpoint) -> None:
    until = NOW + timedelta(seconds=30)
    set_health(endpoint, paused_at=NOW, paused_until=until, pause_seconds=30, consecutive_failures=10)


def deliver(result: PostResult, at: timedelta = timedelta()) -> None:
    """A worker claims one delivery and records this result."""
    (lease,) = claim(1, now=NOW + at)
    with acting_as(WORKER):
        record_result(lease, result, NOW + at)


@pytest.mark.slow
def test_changes_by_merchant_are_recorded_as_endpoint_actions(shop: Shop, receiver: Receiver) -> None:
    first, second = receiver.url("/first"), receiver.url("/second")
    made = shop.post("/Thai/v1/webhooks", {"url": first, "events": [PAYMENT_SUCCEEDED]}).json()
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
    key = key_of(shop)
    assert recorded_actions() == [
        ("created", key, ""),
        ("url_changed", key, f"{first} → {second}"),
        ("events_changed", key, f"before: {PAYMENT_SUCCEEDED}"),
        ("disabled", key, "merchant"),
        ("enabled", key, ""),
        ("secret_rotated", key, ""),
        ("deleted", key, ""),
    ]
    assert set(EndpointAction.objects.values_list("endpoint", "created_at")) == {(made["webhook_id"], NOW)}


@pytest.mark.slow
def test_request_without_change_records_no_endpoint_action(shop: Shop, receiver: Receiver) -> None:
    endpoint = make_endpoint(shop, receiver.url())
    for change in (
        {},
        {"url": receiver.url()},
        {"events": [PAYMENT_SUCCEEDED, PAYMENT_SUCCEEDED]},
        {"status": "active"},
    ):
        assert shop.patch(webhook_path(endpoint), change).status_code == 200
    shop.post(webhook_path(endpoint, "secret/rotate"), {"secret": endpoint.secret})
    shop.post(webhook_path(endpoint, "replay"), {"since": "2026-01-01"})
    assert recorded_actions() == []


def test_refused_webhook_records_no_endpoint_action(shop: Shop) -> None:
    asked = {"url": "https://10.0.0.1/", "events": [PAYMENT_SUCCEEDED]}
    assert shop.post("/Thai/v1/webhooks", asked).status_code == 422
    assert recorded_actions() == []


def test_rolled_back_change_records_no_endpoint_action(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint = make_endpoint(shop)
    monkeypatch.setattr(endpoints, "hold_or_fail_deliveries", broken)
    assert shop.delete(webhook_path(endpoint)).status_code == 500
    assert (recorded_actions(), Endpoint.objects.get().deleted_at) == ([], None)


def broken(*_: Any) -> None:
    raise ZeroDivisionError


@pytest.mark.slow
def test_prolonged_pause_is_recorded_once(shop: Shop) -> None:
    make_endpoint(shop)
    publish(shop, 20)
    for _ in range(circuit_breaker.MAX_CONSECUTIVE_FAILURES):
        deliver(TIMED_OUT)
    deliver(TIMED_OUT, timedelta(seconds=30))
    assert EndpointHealth.objects.get().pause_seconds == 60
    deliver(SUCCEEDED, timedelta(seconds=90))
    why = "10 failures in a row, last: timeout"
    assert recorded_actions() == [("paused", WORKER, why), ("resumed", WORKER, "")]


@pytest.mark.slow
def test_pause_by_failure_rate_records_the_rate(shop: Shop) -> None:
    make_endpoint(shop)
    publish(shop, 20)
    for number in range(circuit_breaker.MIN_WINDOW_ATTEMPTS):
        deliver(SUCCEEDED if number in {2, 5, 8} else TIMED_OUT)
    assert recorded_actions() == [
        ("paused", WORKER, "7 of 10 attempts within 5 minutes failed, last: timeout")
    ]


@pytest.mark.slow
def test_answer_410_disables_webhook_and_records_worker_as_actor(shop: Shop, receiver: Receiver) -> None:
    receiver.on("/hook", Reply(status=410))
    make_endpoint(shop, receiver.url())
    publish(shop, 3)
    with acting_as(WORKER):
        dispatcher.drain(now=lambda: NOW)
    assert recorded_actions() == [("disabled", WORKER, "gone")]


def test_webhook_failing_for_days_is_disabled_by_worker(shop: Shop) -> None:
    endpoint = make_endpoint(shop)
    publish(shop)
    long_ago = NOW - circuit_breaker.DISABLE_AFTER
    set_health(endpoint, consecutive_failures=50, failing_since=long_ago)
    deliver(TIMED_OUT)
    assert recorded_actions()[-1] == ("disabled", WORKER, "failing")


@pytest.mark.parametrize("change", [{"status": "active"}, {"url": "http://127.0.0.1:1/mended"}])
@pytest.mark.slow
def test_change_by_merchant_ends_pause(shop: Shop, receiver: Receiver, change: dict[str, str]) -> None:
    endpoint = make_endpoint(shop)
    pause(endpoint)
    asked = change | ({"url": receiver.url()} if "url" in change else {})
    assert shop.patch(webhook_path(endpoint), asked).status_code == 200
    assert recorded_actions()[-1] == ("resumed", key_of(shop), "")


@pytest.mark.slow
def test_repeated_staff_action_is_recorded_once(shop: Shop) -> None:
    endpoint = make_endpoint(shop)
    publish(shop, 2)
    pause(endpoint)

    services: list[Callable[..., object]] = [
        partial(endpoints.skip_pause, endpoint_id=endpoint.id),
        partial(endpoints.disable, endpoint_id=endpoint.id, reason=DisabledReason.STAFF),
        partial(endpoints.enable, endpoint_id=endpoint.id),
        partial(redelivery.replay_held, endpoint),
    ]
    with acting_as(STAFF):
        for service in services:
            service(now=NOW)
            service(now=NOW)
    assert recorded_actions() == [
        ("pause_skipped", STAFF, ""),
        ("disabled", STAFF, "staff"),
        ("resumed", STAFF, ""),
        ("enabled", STAFF, ""),
        ("replayed", STAFF, "events: 2"),
    ]
    assert set(Delivery.objects.values_list("state", "attempt_count")) == {("pending", 0)}


def test_skip_pause_allows_one_delivery(shop: Shop) -> None:
    endpoint = make_endpoint(shop)
    publish(shop, 5)
    pause(endpoint)
    assert claim(9) == []
    endpoints.skip_pause(endpoint_id=endpoint.id, now=NOW)
    assert len(claim(9)) == 1


def test_replay_held_sends_only_held_deliveries(shop: Shop) -> None:
    endpoint = make_endpoint(shop, status="disabled")
    publish(shop, 2)
    failed = Delivery.objects.order_by("pk")[0]
    Delivery.objects.filter(pk=failed.pk).update(state="failed", finished_at=NOW)
    endpoints.enable(endpoint_id=endpoint.id, now=NOW)
    redelivery.replay_held(endpoint, now=NOW)
    failed.refresh_from_db()
    assert failed.state == "failed"
    assert recorded_actions()[-1][2] == "events: 1"


def test_deleted_webhook_cannot_be_enabled_or_disabled(shop: Shop) -> None:
    endpoint = make_endpoint(shop)
    with acting_as("key:1"):
        endpoints.delete(endpoint, now=NOW)
    endpoints.disable(endpoint_id=endpoint.id, reason=DisabledReason.STAFF, now=NOW)
    endpoints.enable(endpoint_id=endpoint.id, now=NOW)
    pause(endpoint)
    endpoints.skip_pause(endpoint_id=endpoint.id, now=NOW)
    assert recorded_actions() == [("deleted", "key:1", "")]


@pytest.mark.parametrize(
    "sql", ["UPDATE webhooks_endpointaction SET actor = 'nobody'", "DELETE FROM webhooks_endpointaction"]
)
def test_endpoint_actions_are_append_only_in_database(shop: Shop, sql: str) -> None:
    EndpointAction.record(make_endpoint(shop).id, EndpointActionType.CREATED, now=NOW)
    with (
        pytest.raises(DatabaseError, match="never changed"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute(sql)
    assert recorded_actions() == [("created", "", "")]
