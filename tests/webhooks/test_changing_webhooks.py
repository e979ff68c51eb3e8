"""A merchant changes the URL, events or status of a webhook."""

from typing import Any

import pytest
from django.db import transaction
from pytest_django import Settings

from core import clock
from tests.conftest import Shop
from tests.webhook_receiver import Receiver, Reply
from tests.webhooks.api_calls import error_code, webhook_path
from tests.webhooks.builders import PAYMENT_SUCCEEDED, make_endpoint, only_delivery, publish
from webhooks import endpoints, probes
from webhooks.delivery import dispatcher
from webhooks.models import Delivery

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loopback")]


@pytest.mark.slow
def test_patch_keeps_omitted_webhook_fields(shop: Shop) -> None:
    endpoint = make_endpoint(shop)
    before = shop.get(webhook_path(endpoint)).json()
    assert shop.patch(webhook_path(endpoint), {}).json() == before
    changed = shop.patch(
        webhook_path(endpoint), {"events": ["refund.failed", PAYMENT_SUCCEEDED, PAYMENT_SUCCEEDED]}
    )
    assert changed.status_code == 200
    assert changed.json() == before | {"events": ["refund.failed", PAYMENT_SUCCEEDED]}
    assert shop.get(f"/v1/webhooks/{endpoint.id}").json() == changed.json()


def test_new_webhook_url_is_probed_before_the_change(shop: Shop, receiver: Receiver) -> None:
    endpoint = make_endpoint(shop)
    receiver.on("/new", Reply(status=405))
    assert shop.patch(webhook_path(endpoint), {"url": receiver.url("/new")}).json()["url"] == receiver.url(
        "/new"
    )
    (ping,) = receiver.requests
    assert ping.json["data"] == {"webhook_id": endpoint.id}
    endpoint.refresh_from_db()
    assert (endpoint.url, endpoint.last_ping_status) == (receiver.url("/new"), 405)


def test_unchanged_webhook_url_is_not_probed(shop: Shop, receiver: Receiver) -> None:
    endpoint = make_endpoint(shop, receiver.url())
    assert (
        shop.patch(webhook_path(endpoint), {"url": receiver.url(), "events": [PAYMENT_SUCCEEDED]}).status_code
        == 200
    )
    assert receiver.requests == []


@pytest.mark.django_db(transaction=True)
@pytest.mark.slow
def test_no_database_lock_is_held_during_a_probe(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    endpoint, seen = make_endpoint(shop), []
    probe = probes.probe

    def watched(*args: Any, **options: Any) -> int | None:
        seen.append(transaction.get_connection().in_atomic_block)
        return probe(*args, **options)

    monkeypatch.setattr(probes, "probe", watched)
    shop.patch(webhook_path(endpoint), {"url": "http://127.0.0.1:1/"})
    assert seen == [False]


@pytest.mark.parametrize("url", [7, "", "https://10.0.0.1/", "http://127.0.0.1:1/"])
def test_patch_with_invalid_url_changes_nothing(shop: Shop, url: Any) -> None:
    endpoint = make_endpoint(shop)
    answer = shop.patch(webhook_path(endpoint), {"url": url, "status": "disabled"})
    assert error_code(answer) == (422, "invalid_url")
    endpoint.refresh_from_db()
    assert (endpoint.url, endpoint.status) == ("https://shop.example/hook", "active")


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"events": []}, "invalid_events"),
        ({"events": ["webhook.ping"]}, "invalid_events"),
        ({"status": "paused"}, "invalid_status"),
        ({"status": True}, "invalid_status"),
        (b"[]", "invalid_request"),
        (b"{", "invalid_request"),
    ],
)
def test_patch_with_invalid_webhook_field_is_refused(shop: Shop, body: Any, code: str) -> None:
    assert error_code(shop.patch(webhook_path(make_endpoint(shop)), body)) == (400, code)


@pytest.mark.parametrize(
    "name", ["webhook_id", "secret", "created_at", "verification", "last_ping_status", "health"]
)
def test_patch_with_a_field_that_cannot_change_is_refused(shop: Shop, name: str) -> None:
    endpoint = make_endpoint(shop)
    answer = shop.patch(webhook_path(endpoint), {"status": "disabled", name: "x"})
    error = answer.json()["error"]
    assert (answer.status_code, error["code"], error["param"]) == (400, "field_not_changeable", name)
    assert error["message"] == f"{name} cannot be changed. Only these fields can: events, status, url."
    endpoint.refresh_from_db()
    assert endpoint.status == "active"


def test_disabled_webhook_gets_nothing_and_events_are_held(shop: Shop, receiver: Receiver) -> None:
    endpoint = make_endpoint(shop, receiver.url())
    publish(shop)
    assert shop.patch(webhook_path(endpoint), {"status": "disabled"}).json()["status"] == "disabled"
    assert only_delivery().state == "held"
    publish(shop)
    assert dispatcher.drain() == 0
    endpoints.sweep_inactive(now=clock.now())
    assert set(Delivery.objects.values_list("state", flat=True)) == {"held"}


@pytest.mark.slow
def test_enabled_webhook_gets_only_new_events(shop: Shop, receiver: Receiver) -> None:
    endpoint = make_endpoint(shop, receiver.url(), status="disabled", disabled_reason="gone")
    publish(shop)
    assert shop.patch(webhook_path(endpoint), {"status": "active"}).json()["status"] == "active"
    endpoint.refresh_from_db()
    assert endpoint.disabled_reason == ""
    publish(shop)
    assert dispatcher.drain() == 1
    assert sorted(Delivery.objects.values_list("state", flat=True)) == ["held", "succeeded"]


def test_deleted_webhook_cannot_be_changed(shop: Shop) -> None:
    endpoint = make_endpoint(shop)
    shop.delete(webhook_path(endpoint))
    assert error_code(shop.patch(webhook_path(endpoint), {"status": "active"})) == (404, "webhook_not_found")


def test_changed_url_is_checked_without_probe(shop: Shop, settings: Settings) -> None:
    settings.WEBHOOK_PROBE = "off"
    endpoint = make_endpoint(shop)
    assert shop.patch(webhook_path(endpoint), {"url": "https://new.example/hook"}).status_code == 200
    assert error_code(shop.patch(webhook_path(endpoint), {"url": "https://10.0.0.1/"})) == (
        422,
        "invalid_url",
    )
