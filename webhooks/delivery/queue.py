"""PostgreSQL as the queue: workers claim due deliveries under leases, and expired leases are reclaimed."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models.functions import Now

from core import clock
from core.database import rows
from webhooks import bodies, models
from webhooks.delivery import metrics
from webhooks.delivery.claim_query import CLAIM, OTHERS
from webhooks.delivery.retry_schedule import MAX_ATTEMPTS

# Posts to one endpoint at a time, so that a slow endpoint cannot take all posts of a worker. An endpoint that
# answers within QUICK_MS and did not fail last gets more, because the network's round trip would limit its
# rate.
MAX_IN_FLIGHT, MAX_IN_FLIGHT_QUICK = 4, 32
QUICK_MS = 250
SLOW_MS = 1000  # slower endpoints, and endpoints without a post so far, share a part of the posts of a worker
# An unverified endpoint gets one attempt in this time, so that unwanted posts cannot flood a server.
UNVERIFIED_INTERVAL_SECONDS = 15.0
# A destination gets one message in this time, and so at most 60 an hour. It tells of up to 1,000 events, ten
# of them one by one.
MESSAGE_INTERVAL_SECONDS = 60.0
EVENTS_PER_MESSAGE, LINES_PER_MESSAGE = 1000, 10
ENDPOINTS_PER_CLAIM = 256  # one statement reads at most this many endpoints, which limits its cost
LEASE_MARGIN_SECONDS = 15.0  # time that a worker may need in addition to the post itself
RECLAIM_BATCH = 500
WORKER_LOST = "worker_lost"  # the error of an attempt whose lease expired
CLAIM_LOCK_ID = 0x7468_7172_6462  # Any constant. Claims take turns under this advisory lock.


class Quota(StrEnum):
    """The limit of a worker that a delivery counts against."""

    SLOW = "slow"  # the endpoint is slow, or got no post so far
    NORMAL = "normal"  # one of the first 4 posts at a time to an endpoint
    EXTRA = "extra"  # a post beyond these 4; only quick endpoints get more


@dataclass(frozen=True, slots=True)
class ClaimLimits:
    """How many posts a claim may add: in total, per quota and per merchant."""

    posts: int
    slow: int
    extra: int
    per_merchant: int
    slow_per_merchant: int
    in_flight: Sequence["Lease"] = ()  # they count against the limits of their merchants
    ended: Sequence[str] = ()  # ids of deliveries whose post succeeded, and whose result is not recorded yet


@dataclass(frozen=True, slots=True)
class Lease:
    """A delivery that one worker owns, with everything that it needs to post it."""

    delivery_id: str
    lease_id: UUID
    attempt: int
    trigger: models.DeliveryTrigger
    event_id: str
    body: bytes
    merchant_mode: str | None
    merchant_name: str | None
    quota: Quota
    endpoint: models.Endpoint
    traceparent: str | None = None
    # The other deliveries of a message to a destination. What becomes of the message becomes of each.
    companions: Sequence[str] = ()
    lines: Sequence[bytes] = ()  # the bodies of the first few

    @property
    def delivery_ids(self) -> list[str]:
        return [self.delivery_id, *self.companions]


def lease_seconds() -> float:
    """The length of a lease, which is always longer than a post."""
    return float(settings.WEBHOOK_TIMEOUT_SECONDS) + LEASE_MARGIN_SECONDS


class RoundRobinClaimer:
    """Claims deliveries of 256 waiting endpoints at a time. Each claim starts where the last one ended."""

    def __init__(self) -> None:
        self._after = ""

    def claim(self, *, now: datetime, limits: ClaimLimits) -> list[Lease]:
        """Claim due deliveries within the limits, in a separate commit.

        No endpoint and no merchant gets more than its share. Merchants with the fewest posts in flight come
        first, and their endpoints come in random order. The claim skips rows that another worker has locked,
        so an empty result does not prove that nothing is due.
        """
        start, has_wrapped = self._after, self._after == ""
        while True:
            claimed, self._after = claim_in_window(self._after, now, limits)
            if claimed:
                return claimed
            if has_wrapped and (self._after == "" or self._after >= start != ""):
                return []
            has_wrapped = has_wrapped or self._after == ""


def claim_in_window(after: str, now: datetime, limits: ClaimLimits) -> tuple[list[Lease], str]:
    """Return the claimed deliveries, and the last endpoint of the window or "" at the end."""
    posts = Counter(lease.endpoint.merchant_id or "" for lease in limits.in_flight)
    slow = Counter(
        lease.endpoint.merchant_id or "" for lease in limits.in_flight if lease.quota is Quota.SLOW
    )
    values: dict[str, Any] = {
        "after": after,
        "now": now,
        "unverified_before": now - timedelta(seconds=UNVERIFIED_INTERVAL_SECONDS / settings.SPEEDUP),
        "message_before": now - timedelta(seconds=MESSAGE_INTERVAL_SECONDS / settings.SPEEDUP),
        "time": f"{now.astimezone(clock.BANGKOK):%H:%M}",
        "window": ENDPOINTS_PER_CLAIM,
        "seconds": lease_seconds(),
        "share": MAX_IN_FLIGHT,
        "quick_share": MAX_IN_FLIGHT_QUICK,
        "quick_ms": QUICK_MS,
        "slow_ms": SLOW_MS,
        "normal_limit": limits.posts,
        "slow_limit": limits.slow,
        "extra_limit": limits.extra,
        "merchant_limit": limits.per_merchant,
        "merchant_slow_limit": limits.slow_per_merchant,
        "ended": list(limits.ended),
        "busy": list(posts),
        "busy_posts": list(posts.values()),
        "busy_slow_posts": [slow[merchant_id] for merchant_id in posts],
    }
    with transaction.atomic():
        # Two claims at once would not see each other's posts in flight. A claim takes a few milliseconds. Its
        # plan may be kept from when no delivery had a lease.
        lock = "SELECT set_config('enable_seqscan', 'off', true), pg_advisory_xact_lock(%s)"
        rows.run(lock, [CLAIM_LOCK_ID])
        found = rows.run(CLAIM, values).fetchall()
        leases = _with_companions([_lease(row) for _, *row in found if row[0] is not None], now)
    return leases, found[0][0] or ""


def _with_companions(leases: list[Lease], now: datetime) -> list[Lease]:
    """Add to each scheduled message what else is due for its destination, under the same lease."""
    messages = {
        lease.endpoint.id: lease.delivery_id
        for lease in leases
        if lease.endpoint.type != models.EndpointType.WEBHOOK and lease.trigger is models.DeliveryTrigger.AUTO
    }
    if not messages:
        return leases
    values = {
        "endpoints": list(messages),
        "deliveries": list(messages.values()),
        "now": now,
        "most": EVENTS_PER_MESSAGE - 1,
        "lines": LINES_PER_MESSAGE - 1,
    }
    found = {
        endpoint_id: {"companions": ids, "lines": list(map(bodies.unpack, lines, owns))}
        for endpoint_id, ids, lines, owns in rows.run(OTHERS, values).fetchall()
    }
    return [replace(lease, **found.get(lease.endpoint.id, {})) for lease in leases]


def reclaim_expired(*, now: datetime) -> int:
    """Make deliveries with an expired lease due again; the attempt is `worker_lost`. Return how many."""
    with transaction.atomic():
        # By the clock of the database, as when the lease began. A locked row is being recorded by its worker,
        # which was late, or reclaimed by another one.
        expired = models.DeliveryLease.objects.filter(lease_until__lte=Now())
        # All deliveries of a message at once, because they are sent again as one message.
        some = expired.order_by("lease_id").values("lease_id")[:RECLAIM_BATCH]
        locked = expired.filter(lease_id__in=some).select_for_update(skip_locked=True)
        ended = {lease.delivery_id: lease for lease in locked}
        lost = list(models.Delivery.objects.filter(pk__in=ended).select_for_update(no_key=True))
        attempts = models.DeliveryAttempt.objects.bulk_create(
            [_lost_attempt(delivery, ended[delivery.pk]) for delivery in lost]
        )
        for delivery in lost:
            delivery.attempt_count += 1
            if delivery.trigger == models.DeliveryTrigger.AUTO and delivery.attempt_count < MAX_ATTEMPTS:
                delivery.due_at = now
            else:
                delivery.state, delivery.finished_at = models.DeliveryState.FAILED, now
        models.Delivery.objects.bulk_update(lost, ["state", "due_at", "attempt_count", "finished_at"])
        lease_ids = {lease.lease_id for lease in ended.values()}
        expired.filter(delivery_id__in=ended, lease_id__in=lease_ids).delete()
    metrics.count_attempts(attempts)
    return len(lost)


def _lost_attempt(delivery: models.Delivery, lease: models.DeliveryLease) -> models.DeliveryAttempt:
    return models.DeliveryAttempt(
        delivery=delivery,
        number=delivery.attempt_count + 1,
        trigger=delivery.trigger,
        started_at=lease.lease_until - timedelta(seconds=lease_seconds()),
        error=WORKER_LOST,
    )


def _lease(row: list[Any]) -> Lease:
    delivery_id, lease_id, attempt, trigger, event_id, subject_id, body, *others = row
    traceparent, mode, name, quota, *columns = others
    return Lease(
        delivery_id=delivery_id,
        lease_id=lease_id,
        attempt=attempt,
        trigger=models.DeliveryTrigger(trigger),
        event_id=event_id,
        body=bodies.unpack(body, event_id + subject_id),
        merchant_mode=mode,
        merchant_name=name,
        quota=Quota(quota),
        endpoint=rows.instance(models.Endpoint, columns),
        traceparent=traceparent,
    )
