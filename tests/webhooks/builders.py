"""Endpoints, events, claims and results for tests of webhooks."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from core import ids, vault
from core.observing import measurements
from tests.conftest import Shop
from webhooks import events
from webhooks.delivery import attempt_log
from webhooks.delivery.attempt_log import DeliveryResult
from webhooks.delivery.queue import ClaimLimits, Lease, RoundRobinClaimer
from webhooks.http.client import PostResult
from webhooks.models import Delivery, Endpoint, EndpointHealth, EventType

NOW = datetime(2026, 11, 21, 3, 4, 5, 123000, tzinfo=UTC)
SECRET = "whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY="
PAYMENT_SUCCEEDED = EventType.PAYMENT_SUCCEEDED
SUCCEEDED = PostResult(status=200, error="", excerpt="", duration_ms=20, peer="192.0.2.1", retry_after=None)
FAILED = replace(SUCCEEDED, status=500, error="http_5xx")


def make_endpoint(
    shop: Shop,
    url: str = "https://shop.example/hook",
    *,
    latency_ms: int | None = None,
    is_verified: bool = True,
    **fields: Any,
) -> Endpoint:
    """A stored endpoint for PAYMENT_SUCCEEDED. Without `latency_ms` it got no delivery so far."""
    endpoint_id = ids.new("wh_", NOW)
    given: dict[str, Any] = {"events": [PAYMENT_SUCCEEDED], "created_at": NOW, "updated_at": NOW} | fields
    sealed = vault.seal(given.pop("secret", SECRET), context=endpoint_id)
    endpoint: Endpoint = Endpoint.objects.create(
        id=endpoint_id, merchant=shop.merchant, url=url, secret_sealed=sealed, **given
    )
    EndpointHealth.objects.create(
        endpoint=endpoint, latency_ms=latency_ms, verified_at=NOW if is_verified else None
    )
    return endpoint


def set_health(endpoint: Endpoint, **fields: Any) -> None:
    """Change the health of a stored endpoint."""
    EndpointHealth.objects.filter(endpoint=endpoint).update(**fields)


def claim(
    limit: int = 1,
    *,
    now: datetime = NOW,
    claimer: RoundRobinClaimer | None = None,
    slow: int | None = None,
    extra: int | None = None,
    per_merchant: int | None = None,
    slow_per_merchant: int | None = None,
    in_flight: Sequence[Lease] = (),
) -> list[Lease]:
    """Claim as a worker with room for `limit` posts. The other limits are the same unless given."""
    limits = ClaimLimits(
        posts=limit,
        slow=limit if slow is None else slow,
        extra=limit if extra is None else extra,
        per_merchant=limit if per_merchant is None else per_merchant,
        slow_per_merchant=limit if slow_per_merchant is None else slow_per_merchant,
        in_flight=in_flight,
    )
    return (claimer or RoundRobinClaimer()).claim(now=now, limits=limits)


def new_event(
    shop: Shop, *, type: str = PAYMENT_SUCCEEDED, at: datetime = NOW, **data: Any
) -> events.NewEvent:
    subject_id = ids.new("pay_", at)
    return events.NewEvent(shop.merchant.id, type, subject_id, {"payment_id": subject_id, **data}, at)


def publish(shop: Shop, times: int = 1, **options: Any) -> None:
    events.publish_many([new_event(shop, **options) for _ in range(times)])


def record_result(lease: Lease, result: PostResult, at: datetime = NOW) -> bool:
    """Record a result as the worker that made the claim. Return whether its lease was valid."""
    results = [DeliveryResult(lease, result, started_at=at, ended_at=at)]
    return attempt_log.record(results) == {lease.delivery_id}


def failed_wakeups() -> int:
    """How many wake-ups of this process failed, and are not in the database yet."""
    taken = measurements.OF_PROCESS.take()
    measurements.OF_PROCESS.put_back(taken)
    return sum(count for key, (count, _) in taken.items() if key.name == measurements.FAILED_WAKEUP)


def only_delivery() -> Delivery:
    return Delivery.objects.get()
