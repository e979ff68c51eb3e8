"""A merchant sees how a webhook does, and why it is paused or disabled."""

from datetime import timedelta
from typing import Any

import pytest

from tests.conftest import Shop
from tests.receiver import Receiver, Reply
from tests.webhooks.cast import NOW, make_endpoint, publish
from webhooks import acts, breaker, deliveries, endpoints
from webhooks.models import DisabledReason, Endpoint

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loopback", "frozen")]

HEALTHY = {
    "state": "healthy",
    "consecutive_failures": 0,
    "failing_since": None,
    "paused_until": None,
    "last_error": None,
}


def shown(shop: Shop, endpoint: Endpoint) -> dict[str, Any]:
    """The webhook, which the list shows in the same way."""
    found: dict[str, Any] = shop.get(f"/Thai/v1/webhooks/{endpoint.id}").json()
    assert shop.get("/Thai/v1/webhooks").json()["webhooks"] == [found]
    return found


def tell(times: int, shop: Shop) -> None:
    publish(shop, times)
    deliveries.drain(now=lambda: NOW)


def test_a_webhook_that_was_never_asked_counts_as_healthy(shop: Shop) -> None:
    webhook = shown(shop, make_endpoint(shop))
    assert (webhook["disabled_reason"], webhook["health"]) == (None, HEALTHY)


def test_a_webhook_that_fails_says_since_when_and_how(shop: Shop, receiver: Receiver) -> None:
    receiver.on("/hook", Reply(status=500))
    endpoint = make_endpoint(shop, receiver.url())
    tell(3, shop)
    assert shown(shop, endpoint)["health"] == {
        "state": "failing",
        "consecutive_failures": 3,
        "failing_since": "2026-11-21T03:04:05.123Z",
        "paused_until": None,
        "last_error": "http_5xx",
    }
    receiver.on("/hook", Reply())
    tell(1, shop)
    assert shown(shop, endpoint)["health"] == HEALTHY


def test_a_paused_webhook_says_until_when(shop: Shop, receiver: Receiver) -> None:
    receiver.on("/hook", Reply(status=404))
    endpoint = make_endpoint(shop, receiver.url())
    tell(breaker.FAILURES_IN_A_ROW, shop)
    health = shown(shop, endpoint)["health"]
    assert (health["state"], health["paused_until"]) == ("paused", "2026-11-21T03:04:35.123Z")
    assert shown(shop, endpoint)["status"] == "active"


def test_a_webhook_that_is_gone_says_so(shop: Shop, receiver: Receiver) -> None:
    receiver.on("/hook", Reply(status=410))
    endpoint = make_endpoint(shop, receiver.url())
    tell(1, shop)
    webhook = shown(shop, endpoint)
    assert (webhook["status"], webhook["disabled_reason"]) == ("disabled", "gone")


@pytest.mark.parametrize("reason", DisabledReason)
def test_a_disabled_webhook_says_why_until_it_is_enabled(shop: Shop, reason: DisabledReason) -> None:
    endpoint = make_endpoint(shop)
    endpoints.disable(endpoint_id=endpoint.id, reason=reason, actor=acts.SYSTEM, now=NOW)
    assert shown(shop, endpoint)["disabled_reason"] == reason
    changed = shop.patch(f"/Thai/v1/webhooks/{endpoint.id}", {"status": "active"}).json()
    assert (changed["status"], changed["disabled_reason"]) == ("active", None)


def test_a_mended_webhook_is_healthy_in_the_answer(shop: Shop, receiver: Receiver) -> None:
    receiver.on("/hook", Reply(status=500))
    endpoint = make_endpoint(shop, receiver.url())
    tell(1, shop)
    changed = shop.patch(f"/Thai/v1/webhooks/{endpoint.id}", {"url": receiver.url("/mended")}).json()
    assert changed["health"] == HEALTHY


def test_a_page_of_webhooks_costs_the_same_however_many_it_shows(
    shop: Shop, django_assert_max_num_queries: Any
) -> None:
    for _ in range(10):
        make_endpoint(shop, created_at=NOW - timedelta(days=1))
    with django_assert_max_num_queries(4):
        assert len(shop.get("/Thai/v1/webhooks").json()["webhooks"]) == 10
