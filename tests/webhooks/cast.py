"""Who plays in the tests of webhooks: endpoints, and things that happen."""

from datetime import UTC, datetime
from typing import Any

from core import ids, vault
from tests.conftest import Shop
from webhooks import events
from webhooks.event_types import EventType
from webhooks.models import Delivery, Endpoint, Health

NOW = datetime(2026, 11, 21, 3, 4, 5, 123000, tzinfo=UTC)
SECRET = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
PAID = EventType.PAYMENT_SUCCEEDED


def make_endpoint(
    shop: Shop, url: str = "https://shop.example/hook", *, latency_ms: int | None = None, **fields: Any
) -> Endpoint:
    """A stored endpoint that nobody probed; it subscribes to PAID, and was never asked unless it is said how
    long it takes.
    """
    endpoint_id = ids.new("wh_", NOW)
    given: dict[str, Any] = {"events": [PAID], "created_at": NOW, "updated_at": NOW} | fields
    sealed = vault.seal(given.pop("secret", SECRET), context=endpoint_id)
    endpoint: Endpoint = Endpoint.objects.create(
        id=endpoint_id, merchant=shop.merchant, url=url, secret_sealed=sealed, **given
    )
    if latency_ms is not None:
        Health.objects.create(endpoint=endpoint, latency_ms=latency_ms)
    return endpoint


def happening(shop: Shop, *, type: str = PAID, at: datetime = NOW, **data: Any) -> events.Happening:
    subject_id = ids.new("pay_", at)
    return events.Happening(shop.merchant.id, type, subject_id, {"payment_id": subject_id, **data}, at)


def publish(shop: Shop, times: int = 1, **options: Any) -> None:
    events.publish_many([happening(shop, **options) for _ in range(times)])


def only_delivery() -> Delivery:
    return Delivery.objects.get()
