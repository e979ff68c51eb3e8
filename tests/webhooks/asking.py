"""What a merchant asks of its webhooks over the API, on the day after NOW unless told otherwise."""

from datetime import datetime, timedelta
from typing import Any

from core.clock import iso
from tests.conftest import Shop
from tests.webhooks.cast import NOW
from webhooks import deliveries
from webhooks.models import Delivery, Endpoint

LATER = NOW + timedelta(days=1)


def path_of(endpoint: Endpoint, *tail: str) -> str:
    return "/".join(["/Thai/v1/webhooks", endpoint.id, *tail])


def error_code(answer: Any) -> tuple[int, str]:
    return answer.status_code, answer.json()["error"]["code"]


def listed(shop: Shop, endpoint: Endpoint, query: str = "") -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = shop.get(path_of(endpoint, "deliveries") + query).json()["deliveries"]
    return found


def redeliver(shop: Shop, endpoint: Endpoint, delivery_id: str, **options: Any) -> Any:
    return shop.post(path_of(endpoint, "deliveries", delivery_id, "redeliver"), **options)


def replay(shop: Shop, endpoint: Endpoint, since: datetime = NOW, **options: Any) -> Any:
    return shop.post(path_of(endpoint, "replay"), {"since": iso(since)}, **options)


def drain(now: datetime = LATER) -> int:
    return deliveries.drain(now=lambda: now)


def states() -> list[str]:
    return sorted(Delivery.objects.values_list("state", flat=True))
