"""API requests of a merchant about its webhooks. `drain` delivers on the day after NOW by default."""

from datetime import datetime, timedelta
from typing import Any

from core.clock import iso
from tests.conftest import Shop
from tests.webhooks.builders import NOW
from webhooks.delivery import dispatcher
from webhooks.models import Delivery, Endpoint

LATER = NOW + timedelta(days=1)


def webhook_path(endpoint: Endpoint, *tail: str) -> str:
    return "/".join(["/Thai/v1/webhooks", endpoint.id, *tail])


def error_code(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def key_of(shop: Shop) -> str:
    """The actor of the shop's requests."""
    return f"key:{shop.merchant.keys.get().public_id}"


def list_deliveries(shop: Shop, endpoint: Endpoint, query: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = shop.get(webhook_path(endpoint, "deliveries") + query).json()["deliveries"]
    return found


def redeliver(shop: Shop, endpoint: Endpoint, delivery_id: str, **options: Any) -> Any:
    return shop.post(webhook_path(endpoint, "deliveries", delivery_id, "redeliver"), **options)


def replay(shop: Shop, endpoint: Endpoint, since: datetime = NOW, **options: Any) -> Any:
    return shop.post(webhook_path(endpoint, "replay"), {"since": iso(since)}, **options)


def drain(now: datetime = LATER) -> int:
    return dispatcher.drain(now=lambda: now)


def delivery_states() -> list[str]:
    return sorted(Delivery.objects.values_list("state", flat=True))
