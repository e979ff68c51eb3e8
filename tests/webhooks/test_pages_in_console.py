"""The pages of endpoints and deliveries begin with how they stand."""

import re
from datetime import timedelta
from html import unescape
from typing import Any

import pytest
from django.contrib.admin.utils import quote
from django.test import Client

from core import clock
from tests.conftest import Shop
from webhooks.models import Delivery, DeliveryAttempt, Endpoint, EndpointHealth

from .builders import make_endpoint, publish, set_health

REFUSED = {"consecutive_failures": 3, "last_error": "http_5xx"}


def sentence(client: Client, row: Any) -> tuple[str, str]:
    """The colour and the text of the sentence of a page."""
    page = client.get(f"/admin/webhooks/{row._meta.model_name}/{quote(row.pk)}/change/")
    assert page.status_code == 200
    ((tone, text),) = re.findall(r'<p class="lead (\w+)">(.*?)</p>', page.text)
    return tone, unescape(re.sub("<[^>]+>", "", text)).strip()


@pytest.fixture
def endpoint(shop: Shop) -> Endpoint:
    return make_endpoint(shop)


@pytest.mark.parametrize(
    ("health", "tone", "text"),
    [
        ({}, "calm", "o requests yet"),
        ({"latency_ms": 20, "verified_at": clock.now()}, "good", "Healthy, answers in about 20 ms."),
        ({"latency_ms": 20, "verified_at": None}, "wait", "Unverified, healthy"),
        (REFUSED, "bad", "3 failures in a row, last: http_5xx"),
        (
            REFUSED
            | {"paused_at": clock.now(), "pause_seconds": 60, "paused_until": clock.now() + timedelta(1)},
            "bad",
            "aused until",
        ),
    ],
)
def test_page_of_an_endpoint_says_how_it_stands(
    admin_client: Client, endpoint: Endpoint, health: dict[str, Any], tone: str, text: str
) -> None:
    set_health(endpoint, **health)
    shown = sentence(admin_client, endpoint)
    assert shown[0] == tone
    assert text in shown[1]


def test_page_of_a_disabled_or_deleted_endpoint_says_it(admin_client: Client, endpoint: Endpoint) -> None:
    Endpoint.objects.update(status="disabled", disabled_reason="gone")
    assert sentence(admin_client, endpoint) == (
        "bad",
        "The webhook answered 410 Gone. Its events are held: enable it, then replay them.",
    )
    Endpoint.objects.update(deleted_at=clock.now())
    assert sentence(admin_client, endpoint)[1].startswith("It was deleted on ")


def test_page_of_a_delivery_says_what_became_of_it(
    admin_client: Client, shop: Shop, endpoint: Endpoint
) -> None:
    publish(shop, 1, at=clock.now())
    delivery = Delivery.objects.get(endpoint=endpoint)
    assert sentence(admin_client, delivery)[1].startswith("It is sent on ")
    DeliveryAttempt.objects.create(
        delivery=delivery, number=1, started_at=clock.now(), status=500, error="http_5xx"
    )
    Delivery.objects.update(attempt_count=1)
    assert sentence(admin_client, delivery)[1].startswith("Attempt 1 failed: HTTP 500. The next one is on ")
    EndpointHealth.objects.update(
        consecutive_failures=3, paused_at=clock.now(), pause_seconds=60, paused_until=clock.now()
    )
    assert sentence(admin_client, delivery)[1].startswith("It waits for the endpoint: ")
    assert "Paused" in admin_client.get("/admin/webhooks/delivery/").text
    Delivery.objects.update(state="failed", finished_at=clock.now())
    assert sentence(admin_client, delivery)[0] == "bad"
    Delivery.objects.update(state="held", finished_at=None)
    assert "the endpoint is disabled" in sentence(admin_client, delivery)[1]
    Delivery.objects.update(state="succeeded", finished_at=clock.now())
    assert sentence(admin_client, delivery)[0] == "good"
