"""PostgreSQL as the queue: who works on which delivery, and until when."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models.functions import Now

from core import rows
from webhooks.models import Attempt, Delivery, DeliveryState, Endpoint, Trigger
from webhooks.schedule import LAST_ATTEMPT

# So many posts to one endpoint at a time: however slow it is, it cannot take every worker thread.
IN_FLIGHT_PER_ENDPOINT = 4
# What a worker may need beside the post itself before somebody else takes over.
SPARE_SECONDS = 15.0
RECLAIMED_AT_ONCE = 500
# Any constant: it names the lock under which claims take turns.
CLAIM_LOCK = 0x7468_7172_6462


@dataclass(frozen=True, slots=True)
class Lease:
    """A delivery in one worker's hands, with all that is needed to post it."""

    delivery_id: str
    lease_id: UUID
    attempt: int
    trigger: Trigger
    event_id: str
    body: bytes
    merchant_mode: str
    endpoint: Endpoint


def seconds() -> float:
    """How long a lease lasts: always longer than a post."""
    return float(settings.WEBHOOK_SECONDS) + SPARE_SECONDS


def claim(*, now: datetime, limit: int = 1) -> list[Lease]:
    """Take up to `limit` deliveries that are due, in a commit of its own; an attempt is spent by it.

    No endpoint gets more than its share in flight, and no order among endpoints is favoured. None found
    does not prove that nothing waits: what another worker holds at this moment is passed over.
    """
    values: dict[str, Any] = {"now": now, "limit": limit, "cap": IN_FLIGHT_PER_ENDPOINT, "seconds": seconds()}
    with transaction.atomic(), connection.cursor() as cursor:
        # A statement sees what was committed before it began: without turns two claims would both count
        # too few in flight. Claims take a millisecond or two.
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [CLAIM_LOCK])
        cursor.execute(_claim_sql(), values)
        return [_lease(row) for row in cursor.fetchall()]


def reclaim(*, now: datetime) -> int:
    """Make deliveries due again whose worker did not come back in time; returns how many.

    The attempt stays spent and is written down as `worker_lost`.
    """
    with transaction.atomic():
        lost = list(_expired()[:RECLAIMED_AT_ONCE])
        Attempt.objects.bulk_create([_lost_attempt(delivery) for delivery in lost])
        for delivery in lost:
            _give_back(delivery, now)
        Delivery.objects.bulk_update(lost, ["state", "due_at", "lease_id", "lease_until", "finished_at"])
    return len(lost)


def _expired() -> Any:
    # The database's clock, as when the lease was given.
    leased = Delivery.objects.filter(state=DeliveryState.LEASED, lease_until__lte=Now())
    return leased.select_for_update(skip_locked=True, no_key=True)


def _lost_attempt(delivery: Delivery) -> Attempt:
    assert delivery.lease_until is not None, "the database lets no lease be without an end"
    started_at = delivery.lease_until - timedelta(seconds=seconds())
    return Attempt(
        delivery=delivery,
        number=delivery.attempts,
        trigger=delivery.trigger,
        started_at=started_at,
        error="worker_lost",
    )


def _give_back(delivery: Delivery, now: datetime) -> None:
    delivery.lease_id = delivery.lease_until = None
    if delivery.trigger == Trigger.AUTO and delivery.attempts < LAST_ATTEMPT:
        delivery.state, delivery.due_at = DeliveryState.PENDING, now
    else:
        delivery.state, delivery.finished_at = DeliveryState.FAILED, now


def _lease(row: tuple[Any, ...]) -> Lease:
    delivery_id, lease_id, attempt, trigger, event_id, body, mode, *endpoint = row
    shown = rows.instance(Endpoint, endpoint)
    return Lease(delivery_id, lease_id, attempt, Trigger(trigger), event_id, body, mode, shown)


@lru_cache
def _claim_sql() -> str:
    """`waiting` hops from endpoint to endpoint along an index, so a long backlog costs nothing."""
    return f"""
        WITH RECURSIVE waiting (endpoint_id) AS (
            (SELECT endpoint_id FROM webhooks_delivery WHERE state = 'pending' ORDER BY endpoint_id LIMIT 1)
            UNION ALL
            SELECT (
                SELECT d.endpoint_id FROM webhooks_delivery d
                WHERE d.state = 'pending' AND d.endpoint_id > w.endpoint_id ORDER BY d.endpoint_id LIMIT 1
            )
            FROM waiting w WHERE w.endpoint_id IS NOT NULL
        ), shuffled AS MATERIALIZED (
            SELECT e.id FROM waiting w JOIN webhooks_endpoint e ON e.id = w.endpoint_id
            WHERE e.status = 'active' AND e.deleted_at IS NULL ORDER BY random()
        ), taken AS MATERIALIZED (
            SELECT due.id FROM shuffled s CROSS JOIN LATERAL (
                SELECT d.id FROM webhooks_delivery d
                WHERE d.endpoint_id = s.id AND d.state = 'pending' AND d.due_at <= %(now)s
                ORDER BY d.due_at
                LIMIT greatest(0, %(cap)s - (
                    SELECT count(*) FROM webhooks_delivery f WHERE f.endpoint_id = s.id AND f.state = 'leased'
                ))
                FOR NO KEY UPDATE SKIP LOCKED
            ) due
            LIMIT %(limit)s
        )
        UPDATE webhooks_delivery d
        SET state = 'leased', attempts = d.attempts + 1, lease_id = gen_random_uuid(),
            lease_until = clock_timestamp() + make_interval(secs => %(seconds)s)
        FROM taken, webhooks_endpoint e, webhooks_event v, merchants_merchant m
        WHERE d.id = taken.id AND e.id = d.endpoint_id AND v.id = d.event_id AND m.id = e.merchant_id
        RETURNING d.id, d.lease_id, d.attempts, CASE d.resend WHEN 0 THEN 'auto' ELSE 'manual' END,
            v.id, v.body, m.mode, {rows.columns(Endpoint, "e")}
    """  # noqa: S608
