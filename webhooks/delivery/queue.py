"""PostgreSQL as the queue: who works on which delivery, and until when."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models.functions import Now

from core import rows
from webhooks.delivery import metrics
from webhooks.delivery.claim_query import CLAIM
from webhooks.delivery.retry_schedule import MAX_ATTEMPTS
from webhooks.models import Delivery, DeliveryAttempt, DeliveryState, DeliveryTrigger, Endpoint

# So many posts to one endpoint at a time: however slow it is, it cannot take every thread. One that answers
# within QUICK_MS, and did not fail just now, gets more, or the way there and back would limit its rate.
MAX_IN_FLIGHT, MAX_IN_FLIGHT_QUICK = 4, 32
QUICK_MS = 250
# Endpoints that take longer than this, or were never asked, share only a part of a worker's threads.
SLOW_MS = 1000
# An endpoint that never answered 2xx gets one attempt in this time, so that our posts flood nobody.
UNVERIFIED_INTERVAL_SECONDS = 15.0
# So many endpoints are looked at by one statement, which bounds what it costs.
ENDPOINTS_PER_CLAIM = 256
# What a worker may need beside the post itself before somebody else takes over.
LEASE_MARGIN_SECONDS = 15.0
RECLAIM_BATCH = 500
# The error of an attempt whose worker did not come back.
WORKER_LOST = "worker_lost"
# Any constant: it names the lock under which claims take turns.
CLAIM_LOCK_ID = 0x7468_7172_6462


class Quota(StrEnum):
    """Which limit of a worker a delivery counts against."""

    SLOW = "slow"  # its endpoint is slow, or was never asked
    NORMAL = "normal"  # within the share that every endpoint has
    EXTRA = "extra"  # beyond it, because the endpoint is quick


@dataclass(frozen=True, slots=True)
class ClaimLimits:
    """How many posts a claim may add: in all, per quota, and per merchant.

    `slow` and `extra` are the limits of these quotas. `in_flight` counts against the limits of its merchants.
    """

    posts: int
    slow: int
    extra: int
    per_merchant: int
    slow_per_merchant: int
    in_flight: Sequence["Lease"] = ()


@dataclass(frozen=True, slots=True)
class Lease:
    """A delivery in one worker's hands, with all that is needed to post it."""

    delivery_id: str
    lease_id: UUID
    attempt: int
    trigger: DeliveryTrigger
    event_id: str
    body: bytes
    merchant_mode: str
    quota: Quota
    endpoint: Endpoint


def lease_seconds() -> float:
    """How long a lease lasts: always longer than a post."""
    return float(settings.WEBHOOK_TIMEOUT_SECONDS) + LEASE_MARGIN_SECONDS


class RoundRobinClaimer:
    """Claims go round all endpoints that wait, a window at a time, each from where the last one ended."""

    def __init__(self) -> None:
        self._after = ""

    def claim(self, *, now: datetime, limits: ClaimLimits) -> list[Lease]:
        """Take deliveries that are due, within the limits.

        In a commit of its own; an attempt is spent by it. No endpoint and no merchant gets more than its
        share in flight. Merchants with few posts under way come first, and no order among the endpoints of
        one is favoured. None found does not prove that nothing waits: what another worker holds at this
        moment is passed over.
        """
        start, has_wrapped = self._after, self._after == ""
        while True:
            claimed, self._after = _claim_in_window(self._after, now, limits)
            if claimed:
                return claimed
            if has_wrapped and (self._after == "" or self._after >= start != ""):
                return []
            has_wrapped = has_wrapped or self._after == ""


def _claim_in_window(after: str, now: datetime, limits: ClaimLimits) -> tuple[list[Lease], str]:
    """What was taken, and the last endpoint looked at; "" once the end is reached."""
    values: dict[str, Any] = _values(limits) | {
        "after": after,
        "now": now,
        "unverified_before": now - timedelta(seconds=UNVERIFIED_INTERVAL_SECONDS / settings.SPEEDUP),
        "window": ENDPOINTS_PER_CLAIM,
        "seconds": lease_seconds(),
        "share": MAX_IN_FLIGHT,
        "quick_share": MAX_IN_FLIGHT_QUICK,
        "quick_ms": QUICK_MS,
        "slow_ms": SLOW_MS,
    }
    with transaction.atomic(), connection.cursor() as cursor:
        # A statement sees what was committed before it began: without turns two claims would both count
        # too few in flight. Claims take a few milliseconds.
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [CLAIM_LOCK_ID])
        cursor.execute(CLAIM, values)
        found = cursor.fetchall()
    return [_lease(row) for _, *row in found if row[0] is not None], found[0][0] or ""


def _values(limits: ClaimLimits) -> dict[str, Any]:
    posts = Counter(lease.endpoint.merchant_id for lease in limits.in_flight)
    slow = Counter(lease.endpoint.merchant_id for lease in limits.in_flight if lease.quota is Quota.SLOW)
    return {
        "normal_limit": limits.posts,
        "slow_limit": limits.slow,
        "extra_limit": limits.extra,
        "merchant_limit": limits.per_merchant,
        "merchant_slow_limit": limits.slow_per_merchant,
        "busy": list(posts),
        "busy_posts": list(posts.values()),
        "busy_slow_posts": [slow[merchant_id] for merchant_id in posts],
    }


def reclaim_expired(*, now: datetime) -> int:
    """Make deliveries due again whose worker did not come back in time; returns how many.

    The attempt stays spent and is written down as `worker_lost`.
    """
    with transaction.atomic():
        lost = list(_expired_leases()[:RECLAIM_BATCH])
        attempts = DeliveryAttempt.objects.bulk_create([_lost_attempt(delivery) for delivery in lost])
        for delivery in lost:
            _release(delivery, now)
        Delivery.objects.bulk_update(lost, ["state", "due_at", "lease_id", "lease_until", "finished_at"])
        metrics.count_attempts(attempts)
    return len(lost)


def _expired_leases() -> Any:
    # The database's clock, as when the lease was given.
    leased = Delivery.objects.filter(state=DeliveryState.LEASED, lease_until__lte=Now())
    return leased.select_for_update(skip_locked=True, no_key=True)


def _lost_attempt(delivery: Delivery) -> DeliveryAttempt:
    assert delivery.lease_until is not None, "the database lets no lease be without an end"
    started_at = delivery.lease_until - timedelta(seconds=lease_seconds())
    return DeliveryAttempt(
        delivery=delivery,
        number=delivery.attempt_count,
        trigger=delivery.trigger,
        started_at=started_at,
        error=WORKER_LOST,
    )


def _release(delivery: Delivery, now: datetime) -> None:
    delivery.lease_id = delivery.lease_until = None
    if delivery.trigger == DeliveryTrigger.AUTO and delivery.attempt_count < MAX_ATTEMPTS:
        delivery.state, delivery.due_at = DeliveryState.PENDING, now
    else:
        delivery.state, delivery.finished_at = DeliveryState.FAILED, now


def _lease(row: list[Any]) -> Lease:
    delivery_id, lease_id, attempt, trigger, event_id, body, mode, quota, *endpoint = row
    endpoint_row = rows.instance(Endpoint, endpoint)
    return Lease(
        delivery_id,
        lease_id,
        attempt,
        DeliveryTrigger(trigger),
        event_id,
        body,
        mode,
        Quota(quota),
        endpoint_row,
    )
