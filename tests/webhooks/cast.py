"""Who plays in the tests of webhooks: endpoints, and things that happen."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

from core import ids, vault
from tests.conftest import Shop
from webhooks import events
from webhooks.event_types import EventType
from webhooks.leases import Lease, Limits, Rounds
from webhooks.models import Delivery, Endpoint, Health

NOW = datetime(2026, 11, 21, 3, 4, 5, 123000, tzinfo=UTC)
SECRET = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
PAID = EventType.PAYMENT_SUCCEEDED


def make_endpoint(
    shop: Shop,
    url: str = "https://shop.example/hook",
    *,
    latency_ms: int | None = None,
    is_verified: bool = True,
    **fields: Any,
) -> Endpoint:
    """A stored endpoint that answered its ping; it subscribes to PAID, and got no event unless it is said how
    long it takes.
    """
    endpoint_id = ids.new("wh_", NOW)
    given: dict[str, Any] = {"events": [PAID], "created_at": NOW, "updated_at": NOW} | fields
    sealed = vault.seal(given.pop("secret", SECRET), context=endpoint_id)
    endpoint: Endpoint = Endpoint.objects.create(
        id=endpoint_id, merchant=shop.merchant, url=url, secret_sealed=sealed, **given
    )
    Health.objects.create(endpoint=endpoint, latency_ms=latency_ms, verified_at=NOW if is_verified else None)
    return endpoint


def set_health(endpoint: Endpoint, **fields: Any) -> None:
    """Change how a stored endpoint answers lately."""
    Health.objects.filter(endpoint=endpoint).update(**fields)


def claim(
    limit: int = 1,
    *,
    now: datetime = NOW,
    rounds: Rounds | None = None,
    slow: int | None = None,
    extra: int | None = None,
    of_merchant: int | None = None,
    slow_of_merchant: int | None = None,
    under_way: Sequence[Lease] = (),
) -> list[Lease]:
    """What a worker takes that has room for `limit` posts, and for any share of it unless told otherwise."""
    limits = Limits(
        posts=limit,
        slow=limit if slow is None else slow,
        extra=limit if extra is None else extra,
        of_merchant=limit if of_merchant is None else of_merchant,
        slow_of_merchant=limit if slow_of_merchant is None else slow_of_merchant,
        under_way=under_way,
    )
    return (rounds or Rounds()).claim(now=now, limits=limits)


def happening(shop: Shop, *, type: str = PAID, at: datetime = NOW, **data: Any) -> events.Happening:
    subject_id = ids.new("pay_", at)
    return events.Happening(shop.merchant.id, type, subject_id, {"payment_id": subject_id, **data}, at)


def publish(shop: Shop, times: int = 1, **options: Any) -> None:
    events.publish_many([happening(shop, **options) for _ in range(times)])


def only_delivery() -> Delivery:
    return Delivery.objects.get()
