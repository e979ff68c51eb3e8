"""A webhook object shows the health of the endpoint, and why it is paused or disabled."""

from datetime import timedelta
from typing import Any

import pytest

from tests.conftest import Shop
from tests.webhook_receiver import Receiver, Reply
from tests.webhooks.builders import NOW, SUCCEEDED, claim, make_endpoint, publish
from webhooks import endpoints
from webhooks.delivery import attempt_log, circuit_breaker, dispatcher
from webhooks.delivery.attempt_log import DeliveryResult
from webhooks.models import Delivery, DisabledReason, Endpoint, EndpointHealth

pytestmark = [pytest.mark.slow, pytest.mark.django_db, pytest.mark.usefixtures("loopback", "frozen")]

HEALTHY = {
    "state": "healthy",
    "consecutive_failures": 0,
    "failing_since": None,
    "paused_until": None,
    "last_error": None,
}


def shown_health(shop: Shop, endpoint: Endpoint) -> dict[str, Any]:
    """Return the webhook object, and check that the list shows the same object."""
    found: dict[str, Any] = shop.get(f"/Thai/v1/webhooks/{endpoint.id}").json()
    assert shop.get("/Thai/v1/webhooks").json()["webhooks"] == [found]
    return found


def deliver_events(times: int, shop: Shop) -> None:
    publish(shop, times)
    dispatcher.drain(now=lambda: NOW)


def test_webhook_without_attempts_is_healthy(shop: Shop) -> None:
    webhook = shown_health(shop, make_endpoint(shop))
    assert (webhook["disabled_reason"], webhook["health"]) == (None, HEALTHY)


def test_failing_webhook_shows_failing_since_and_last_error(shop: Shop, receiver: Receiver) -> None:
    receiver.on("/hook", Reply(status=500))
    endpoint = make_endpoint(shop, receiver.url())
    deliver_events(3, shop)
    assert shown_health(shop, endpoint)["health"] == {
        "state": "failing",
        "consecutive_failures": 3,
        "failing_since": "2026-11-21T03:04:05.123Z",
        "paused_until": None,
        "last_error": "http_5xx",
    }
    receiver.on("/hook", Reply())
    deliver_events(1, shop)
    assert shown_health(shop, endpoint)["health"] == HEALTHY


def test_paused_webhook_shows_paused_until(shop: Shop, receiver: Receiver) -> None:
    receiver.on("/hook", Reply(status=404))
    endpoint = make_endpoint(shop, receiver.url())
    deliver_events(circuit_breaker.MAX_CONSECUTIVE_FAILURES, shop)
    health = shown_health(shop, endpoint)["health"]
    assert (health["state"], health["paused_until"]) == ("paused", "2026-11-21T03:04:35.123Z")
    assert shown_health(shop, endpoint)["status"] == "active"


def test_webhook_that_answered_410_shows_disabled_reason_gone(shop: Shop, receiver: Receiver) -> None:
    receiver.on("/hook", Reply(status=410))
    endpoint = make_endpoint(shop, receiver.url())
    deliver_events(1, shop)
    webhook = shown_health(shop, endpoint)
    assert (webhook["status"], webhook["disabled_reason"]) == ("disabled", "gone")


@pytest.mark.parametrize("reason", DisabledReason)
def test_disabled_webhook_shows_disabled_reason_until_enabled(shop: Shop, reason: DisabledReason) -> None:
    endpoint = make_endpoint(shop)
    endpoints.disable(endpoint_id=endpoint.id, reason=reason, now=NOW)
    assert shown_health(shop, endpoint)["disabled_reason"] == reason
    changed = shop.patch(f"/Thai/v1/webhooks/{endpoint.id}", {"status": "active"}).json()
    assert (changed["status"], changed["disabled_reason"]) == ("active", None)


def test_changed_webhook_is_healthy_in_response(shop: Shop, receiver: Receiver) -> None:
    receiver.on("/hook", Reply(status=500))
    endpoint = make_endpoint(shop, receiver.url())
    deliver_events(1, shop)
    changed = shop.patch(f"/Thai/v1/webhooks/{endpoint.id}", {"url": receiver.url("/mended")}).json()
    assert changed["health"] == HEALTHY


def test_webhook_list_queries_do_not_depend_on_page_size(
    shop: Shop, django_assert_max_num_queries: Any
) -> None:
    for _ in range(10):
        make_endpoint(shop, created_at=NOW - timedelta(days=1))
    with django_assert_max_num_queries(4):
        assert len(shop.get("/Thai/v1/webhooks").json()["webhooks"]) == 10


def test_results_are_recorded_although_one_endpoint_has_no_health(shop: Shop) -> None:
    broken, _ = make_endpoint(shop), make_endpoint(shop)
    publish(shop)
    leases = claim(2)
    EndpointHealth.objects.filter(endpoint=broken).delete()
    results = [DeliveryResult(lease, SUCCEEDED, started_at=NOW, ended_at=NOW) for lease in leases]
    assert attempt_log.record(results) == {lease.delivery_id for lease in leases}
    assert list(Delivery.objects.values_list("state", flat=True)) == ["succeeded"] * 2
