"""An endpoint is unverified until it answers a signed request with 2xx, and gets few attempts until then."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.utils import timezone
from pytest_django import Settings

from tests.conftest import Shop
from tests.webhook_receiver import Receiver, Reply
from tests.webhooks.api_calls import delivery_states, redeliver, replay, webhook_path
from tests.webhooks.builders import NOW, PAYMENT_SUCCEEDED, claim, make_endpoint, publish
from webhooks.delivery import dispatcher
from webhooks.delivery.queue import UNVERIFIED_INTERVAL_SECONDS
from webhooks.models import Delivery, DeliveryAttempt, Endpoint, EndpointAction, EndpointHealth

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loopback", "frozen")]

PATH = "/Thai/v1/webhooks"
NOT_FOUND = Reply(status=404)


def register(shop: Shop, url: str) -> dict[str, Any]:
    answer = shop.post(PATH, {"url": url, "events": [PAYMENT_SUCCEEDED]})
    assert answer.status_code == 200, answer.content
    made: dict[str, Any] = answer.json()
    return made


def verification(shop: Shop, webhook_id: str) -> str:
    return str(shop.get(f"{PATH}/{webhook_id}").json()["verification"])


def drain(seconds: float = 0) -> int:
    now = timezone.now() + timedelta(seconds=seconds)
    return dispatcher.drain(now=lambda: now)


@pytest.mark.parametrize(
    ("status", "expected"), [(200, "verified"), (204, "verified"), (302, "unverified"), (404, "unverified")]
)
def test_webhook_is_verified_by_a_2xx_answer_to_the_first_ping(
    shop: Shop, receiver: Receiver, status: int, expected: str
) -> None:
    receiver.on("/hook", Reply(status=status, body=b""))
    made = register(shop, receiver.url())
    assert made["verification"] == expected == verification(shop, made["webhook_id"])


def test_webhook_without_probe_is_unverified(shop: Shop, settings: Settings) -> None:
    settings.WEBHOOK_PROBE = "off"
    assert register(shop, "https://shop.example/hook")["verification"] == "unverified"


def by_event(shop: Shop, endpoint: Endpoint) -> None:
    publish(shop)


def by_test(shop: Shop, endpoint: Endpoint) -> None:
    assert shop.post(webhook_path(endpoint, "test")).status_code == 200


@pytest.mark.parametrize("send", [by_event, by_test])
@pytest.mark.slow
def test_first_2xx_to_a_delivery_verifies_the_webhook(
    shop: Shop, receiver: Receiver, send: Callable[[Shop, Endpoint], None]
) -> None:
    endpoint = make_endpoint(shop, receiver.url(), is_verified=False)
    receiver.on("/hook", NOT_FOUND, Reply())
    send(shop, endpoint)
    assert drain() == 1
    assert verification(shop, endpoint.id) == "unverified"
    send(shop, endpoint)
    assert drain(UNVERIFIED_INTERVAL_SECONDS) >= 1
    assert verification(shop, endpoint.id) == "verified"
    assert EndpointAction.objects.get(endpoint=endpoint).type == "verified"


def test_unverified_webhook_gets_one_attempt_at_a_time(shop: Shop) -> None:
    make_endpoint(shop, is_verified=False, latency_ms=10)
    publish(shop, 50)
    assert len(claim(100)) == 1
    assert claim(100) == []


@pytest.mark.slow
def test_unverified_webhook_gets_four_attempts_a_minute_and_loses_no_event(
    shop: Shop, receiver: Receiver
) -> None:
    receiver.on("/hook", NOT_FOUND)
    make_endpoint(shop, receiver.url(), is_verified=False)
    publish(shop, 30)
    assert sum(drain(second) for second in range(60)) == 4 == len(receiver.requests)
    assert delivery_states() == ["pending"] * 30
    receiver.on("/hook", Reply())
    drain(60)
    drain(3600)
    assert delivery_states() == ["succeeded"] * 30


def test_verified_webhook_that_fails_is_not_slowed_down_by_verification(
    shop: Shop, receiver: Receiver
) -> None:
    receiver.on("/hook", NOT_FOUND)
    make_endpoint(shop, receiver.url())
    publish(shop, 4)
    assert drain() == 4


# What a merchant can ask for again and again, each of which sends a request.
ASKS: dict[str, Callable[[Shop, Endpoint], Any]] = {
    "test": lambda shop, endpoint: shop.post(webhook_path(endpoint, "test")),
    "redeliver": lambda shop, endpoint: redeliver(shop, endpoint, str(Delivery.objects.earliest("id").id)),
    "replay": replay,
    "enable": lambda shop, endpoint: shop.patch(webhook_path(endpoint), {"status": "active"}),
    "new event": lambda shop, endpoint: publish(shop),
}


@pytest.mark.parametrize("asked", ASKS)
@pytest.mark.slow
def test_merchant_cannot_ask_for_more_attempts_of_an_unverified_webhook(
    shop: Shop, receiver: Receiver, asked: str
) -> None:
    receiver.on("/hook", NOT_FOUND)
    endpoint = make_endpoint(shop, receiver.url(), is_verified=False)
    publish(shop, 3)
    drain()
    for _ in range(5):
        ASKS[asked](shop, endpoint)
        drain(UNVERIFIED_INTERVAL_SECONDS - 1)
    assert len(receiver.requests) == DeliveryAttempt.objects.count() == 1
    drain(UNVERIFIED_INTERVAL_SECONDS)
    assert len(receiver.requests) == 2


def test_attempt_started_before_a_url_change_counts_towards_the_verification_limit(
    shop: Shop, receiver: Receiver
) -> None:
    """Otherwise a merchant could enable a webhook during each attempt and get the next one at once."""
    receiver.on("/hook", NOT_FOUND)
    endpoint = make_endpoint(shop, receiver.url(), is_verified=False)
    EndpointHealth.objects.filter(endpoint=endpoint).update(reset_at=NOW + timedelta(seconds=1))
    publish(shop, 3)
    assert [drain(), drain(), drain(2)] == [1, 0, 0]


@pytest.mark.slow
def test_test_request_of_an_unverified_webhook_waits_for_the_next_allowed_attempt(
    shop: Shop, receiver: Receiver
) -> None:
    receiver.on("/hook", NOT_FOUND, Reply())
    endpoint = make_endpoint(shop, receiver.url(), is_verified=False)
    publish(shop)
    drain()
    tested = shop.post(webhook_path(endpoint, "test")).json()
    assert tested["state"] == "pending"
    drain(UNVERIFIED_INTERVAL_SECONDS)
    assert Delivery.objects.get(pk=tested["delivery_id"]).state == "succeeded"


@pytest.mark.parametrize(("status", "expected"), [(200, "verified"), (404, "unverified")])
def test_changed_url_must_be_verified_again(
    shop: Shop, receiver: Receiver, status: int, expected: str
) -> None:
    endpoint = make_endpoint(shop, receiver.url())
    receiver.on("/moved", Reply(status=status))
    changed = shop.patch(webhook_path(endpoint), {"url": receiver.url("/moved")}).json()
    assert changed["verification"] == expected == verification(shop, endpoint.id)


@pytest.mark.slow
def test_answer_to_the_old_url_does_not_verify_the_new_url(shop: Shop, receiver: Receiver) -> None:
    endpoint = make_endpoint(shop, receiver.url(), is_verified=False)
    publish(shop)
    receiver.on("/moved", NOT_FOUND)
    with time_machine.travel(NOW + timedelta(seconds=1), tick=False):
        shop.patch(webhook_path(endpoint), {"url": receiver.url("/moved")})
    receiver.on("/moved", Reply())
    drain()  # the attempt starts at NOW, before the URL changes
    assert verification(shop, endpoint.id) == "unverified"


def test_disabling_and_enabling_keeps_the_verification(shop: Shop) -> None:
    endpoint = make_endpoint(shop)
    for status in ("disabled", "active"):
        shop.patch(webhook_path(endpoint), {"status": status})
    assert verification(shop, endpoint.id) == "verified"
