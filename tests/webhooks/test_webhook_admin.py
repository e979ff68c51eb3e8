"""Staff see everything about webhooks except secrets. Their actions are recorded with their name."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.contrib.auth.models import Permission, User
from django.test import Client

from core import ids
from tests.conftest import Shop
from tests.staff_acts import send_act
from tests.webhooks.builders import NOW, make_endpoint, only_delivery, publish, set_health
from webhooks import endpoints
from webhooks.models import (
    Delivery,
    DeliveryAttempt,
    Endpoint,
    EndpointAction,
    EndpointHealth,
    Event,
)
from webhooks.summaries import describe_health

pytestmark = [pytest.mark.slow, pytest.mark.django_db]


@pytest.fixture
def staff() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("staff", password=ids.random_text(20)))
    return client


@pytest.fixture
def history(shop: Shop) -> Endpoint:
    """A delivery with an attempt."""
    endpoint = make_endpoint(shop)
    publish(shop, note="ส้มตำ")
    DeliveryAttempt.objects.create(delivery=only_delivery(), number=1, started_at=NOW, error="timeout")
    return endpoint


@pytest.mark.parametrize(
    "model",
    [
        "endpoint",
        "endpointaction",
        "endpointhealth",
        "event",
        "delivery",
        "deliveryattempt",
    ],
)
def test_webhook_admin_lists_open_and_can_be_searched(staff: Client, history: Endpoint, model: str) -> None:
    page = staff.get(f"/admin/webhooks/{model}/", {"q": history.id})
    assert page.status_code == 200
    assert staff.get(f"/admin/webhooks/{model}/add/").status_code == 403


def test_endpoint_page_shows_no_secret(staff: Client, history: Endpoint) -> None:
    page = staff.get(f"/admin/webhooks/endpoint/{history.id}/change/").content.decode()
    assert history.url in page
    assert history.secret not in page
    assert history.secret_sealed not in page
    assert 'name="_save"' not in page


def test_admin_pages_of_endpoint_actions_and_health_open(staff: Client, history: Endpoint) -> None:
    set_health(history, **PAUSED)
    run_action(staff, history, "disable")
    for row in (*EndpointAction.objects.all(), *EndpointHealth.objects.all()):
        page = staff.get(f"/admin/webhooks/{row._meta.model_name}/{row.pk}/change/")
        assert page.status_code == 200
        assert 'name="_save"' not in page.content.decode()


def test_event_page_shows_the_body_as_text(staff: Client, history: Endpoint) -> None:
    page = staff.get(f"/admin/webhooks/event/{Event.objects.get().id}/change/").content.decode()
    assert "ส้มตำ" in page


def test_delivery_page_shows_the_attempts(staff: Client, history: Endpoint) -> None:
    page = staff.get(f"/admin/webhooks/delivery/{only_delivery().id}/change/").content.decode()
    assert "timeout" in page


PAUSED: dict[str, Any] = {
    "verified_at": NOW,
    "paused_at": NOW,
    "paused_until": NOW + timedelta(seconds=120),
    "pause_seconds": 120,
    "consecutive_failures": 12,
    "failing_since": NOW,
    "last_error": "timeout",
}


def run_action(client: Client, endpoint: Endpoint, action: str) -> str:
    """Do it and return the page."""
    return send_act(client, Endpoint, endpoint.id, action).content.decode()


def change_page(client: Client, endpoint: Endpoint) -> str:
    return client.get(f"/admin/webhooks/endpoint/{endpoint.id}/change/").content.decode()


@pytest.mark.parametrize(
    ("status", "health", "tone", "word"),
    [
        ("active", {}, "good", "Active"),
        ("active", {"consecutive_failures": 17, "last_error": "http_5xx"}, "bad", "Failing"),
        ("active", PAUSED, "wait", "Paused"),
        ("active", {"verified_at": None}, "wait", "not verified yet"),
        ("disabled", {"consecutive_failures": 17}, "bad", "Disabled"),
    ],
)
def test_only_an_endpoint_that_answers_is_green(
    staff: Client, shop: Shop, status: str, health: dict[str, Any], tone: str, word: str
) -> None:
    endpoint = make_endpoint(shop, status=status)
    set_health(endpoint, **health)
    merchant = f"/admin/merchants/merchant/{quote(shop.merchant.id)}/change/"
    pages = [staff.get(path).content.decode() for path in ("/admin/webhooks/endpoint/", merchant)]
    for page in (*pages, change_page(staff, endpoint)):
        assert f'<span class="state {tone}">{word}</span>' in page
        assert ('<span class="state good">Active' in page) == (tone == "good")


@pytest.mark.parametrize(
    ("health", "words"),
    [
        (EndpointHealth(), "unverified, no requests yet"),
        (
            EndpointHealth(consecutive_failures=1, last_error="dns"),
            "unverified, 1 failure in a row, last: dns",
        ),
        (EndpointHealth(verified_at=NOW), "no requests yet"),
        (EndpointHealth(verified_at=NOW, latency_ms=87), "healthy, answers in about 87 ms"),
        (
            EndpointHealth(verified_at=NOW, consecutive_failures=1, last_error="dns"),
            "1 failure in a row, last: dns",
        ),
        (EndpointHealth(**PAUSED), "paused until 10:06:05, 120 s, 12 failures in a row, last: timeout"),
        (
            EndpointHealth(**PAUSED | {"paused_until": NOW, "last_error": "dns"}),
            "sends one delivery at a time since 2026-11-21 10:04:05, 12 failures in a row, last: dns",
        ),
        (EndpointHealth(**PAUSED | {"consecutive_failures": 0}), "paused until 10:06:05, 120 s"),
    ],
)
def test_endpoint_health_is_described_in_words(health: EndpointHealth, words: str) -> None:
    assert describe_health(health, NOW) == words


@pytest.mark.usefixtures("frozen")
def test_endpoint_page_shows_health_history_and_failures(staff: Client, history: Endpoint) -> None:
    set_health(history, **PAUSED)
    run_action(staff, history, "disable")
    page = change_page(staff, history)
    assert "paused until 10:06:05, 120 s, 12 failures in a row, last: timeout" in page
    assert "2026-11-21 10:04:05 Disabled by staff: staff" in page
    assert f"2026-11-21 10:04:05 {only_delivery().id} #1: timeout" in page


def test_merchant_text_is_escaped_on_the_endpoint_page(staff: Client, shop: Shop) -> None:
    endpoint = make_endpoint(shop)
    EndpointAction.objects.create(
        endpoint=endpoint, type="url_changed", actor="key:1", created_at=NOW, detail="<script>"
    )
    page = change_page(staff, endpoint)
    assert "by key:1: &lt;script&gt;" in page


def test_repeated_staff_actions_on_an_endpoint_change_nothing(staff: Client, history: Endpoint) -> None:
    set_health(history, **PAUSED | {"paused_until": NOW + timedelta(days=10_000)})
    for action in ("skip-pause", "disable", "enable", "replay"):
        run_action(staff, history, action)
        run_action(staff, history, action)
    recorded = EndpointAction.objects.order_by("id").values_list("type", "actor")
    expected = ["pause_skipped", "disabled", "resumed", "enabled", "replayed"]
    assert list(recorded) == [(each, "staff:staff") for each in expected]
    history.refresh_from_db()
    assert (history.status, history.disabled_reason) == ("active", "")
    assert (only_delivery().state, EndpointHealth.objects.get().paused_at) == ("pending", None)


def test_replay_to_a_disabled_endpoint_by_staff_is_refused(staff: Client, shop: Shop) -> None:
    endpoint = make_endpoint(shop, status="disabled", disabled_reason="staff")
    publish(shop)
    endpoints.sweep_inactive(now=NOW)
    assert "This webhook is disabled" in run_action(staff, endpoint, "replay")
    assert Delivery.objects.get().state == "held"


def test_view_permission_allows_no_webhook_actions(history: Endpoint) -> None:
    reader = User.objects.create_user("reader", password=ids.random_text(20), is_staff=True)
    reader.user_permissions.set(Permission.objects.filter(codename="view_endpoint"))
    client = Client()
    client.force_login(reader)
    assert history.url in change_page(client, history)
    run_action(client, history, "disable")
    history.refresh_from_db()
    assert history.status == "active"
