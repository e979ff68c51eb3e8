"""Destinations of tests, and requests about them."""

from datetime import datetime, timedelta
from typing import Any

from tests.conftest import Shop
from tests.webhooks.builders import NOW, PAYMENT_SUCCEEDED
from tests.webhooks.messages.line_double import CHAT, TOKEN
from webhooks import destinations
from webhooks.delivery import dispatcher
from webhooks.models import Delivery, DeliveryAttempt, Endpoint

MINUTE = timedelta(minutes=1)
PATH = "/Thai/v1/destinations"
TO_LINE = {"type": "line", "to": CHAT, "token": TOKEN, "events": [PAYMENT_SUCCEEDED]}
TO_EMAIL = {"type": "email", "to": "owner@shop.example", "events": [PAYMENT_SUCCEEDED]}


def make(shop: Shop | None, given: dict[str, Any] = TO_LINE, **fields: Any) -> Endpoint:
    """A stored destination of the shop, or of the operator."""
    merchant = None if shop is None else shop.merchant
    return destinations.create(merchant=merchant, now=NOW, **given | fields)


def drain(now: datetime = NOW) -> int:
    return dispatcher.drain(now=lambda: now)


def states() -> list[str]:
    return sorted(Delivery.objects.values_list("state", flat=True))


def errors() -> list[str]:
    return list(DeliveryAttempt.objects.order_by("id").values_list("error", flat=True))
