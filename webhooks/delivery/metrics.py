"""What `/metrics` shows of deliveries: attempts, and the backlog.

The cost of counting the backlog grows with the number of endpoints, not of deliveries.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from core.database import rows
from core.observing import measurements
from merchants.models import Mode
from webhooks.delivery.claim_query import WAITING_ENDPOINTS
from webhooks.models import DeliveryAttempt

SUCCEEDED = "succeeded"
MAX_COUNTED = 100_000  # counting a larger backlog costs time and changes nothing that an operator would do

_ACTIVE_ENDPOINTS = f"""
    WITH RECURSIVE {WAITING_ENDPOINTS}, active AS MATERIALIZED (
        SELECT e.id, e.merchant_id,
            h.paused_until IS NOT NULL OR h.verified_at IS NULL OR e.type <> 'webhook' AS is_paused
        FROM waiting w JOIN webhooks_endpoint e ON e.id = w.endpoint_id
        LEFT JOIN webhooks_endpointhealth h ON h.endpoint_id = e.id
        WHERE e.status = 'active' AND e.deleted_at IS NULL AND (%(mode)s::text IS NULL OR EXISTS (
            SELECT FROM merchants_merchant m WHERE m.id = e.merchant_id AND m.mode = %(mode)s
        ))
    )
"""  # noqa: S608
# Those that workers post wait no longer.
_DUE = """
    d.endpoint_id = a.id AND d.state = 'pending' AND d.due_at <= %(now)s AND d.id <> ALL (ARRAY(
        SELECT f.delivery_id FROM webhooks_deliverylease f WHERE f.endpoint_id = a.id
    ))
"""
_COUNT = f"""
    SELECT count(*) FROM (
        SELECT FROM active a CROSS JOIN LATERAL (
            SELECT FROM webhooks_delivery d WHERE {_DUE} LIMIT %(limit)s
        ) due
        WHERE a.is_paused = {{is_paused}} LIMIT %(limit)s
    ) counted
"""  # noqa: S608
BACKLOG = f"{_ACTIVE_ENDPOINTS} SELECT ({_COUNT.format(is_paused=False)}), ({_COUNT.format(is_paused=True)})"
OLDEST_DUE = f"""
    {_ACTIVE_ENDPOINTS}
    SELECT min(longest.due_at) FROM active a CROSS JOIN LATERAL (
        SELECT d.due_at FROM webhooks_delivery d WHERE {_DUE} ORDER BY d.due_at LIMIT 1
    ) longest
    WHERE NOT a.is_paused AND NOT EXISTS (
        SELECT FROM webhooks_endpoint e JOIN webhooks_deliverylease f ON f.endpoint_id = e.id
        WHERE e.merchant_id = a.merchant_id AND f.lease_until > clock_timestamp()
    )
"""  # noqa: S608
ALL_ENDPOINTS: dict[str, Any] = {"after": "", "window": 2**31 - 1, "mode": None}


def count_attempts(attempts: Iterable[DeliveryAttempt]) -> None:
    """Count attempts whose records are committed."""
    for each in attempts:
        seconds = (each.duration_ms or 0) / 1000
        measurements.OF_PROCESS.add(measurements.DELIVERY, (each.error or SUCCEEDED,), seconds)


@dataclass(frozen=True, slots=True)
class Backlog:
    """Due deliveries: of active endpoints, and of others and destinations. Up to a limit each."""

    due: int
    paused: int


def backlog(now: datetime, limit: int = MAX_COUNTED, *, mode: Mode | None = None) -> Backlog:
    """Count the due deliveries, of live or test merchants or of all, up to `limit` each."""
    values = {"now": now, "limit": limit, "mode": mode}
    return Backlog(*rows.run(BACKLOG, ALL_ENDPOINTS | values).fetchone())


def oldest_due_seconds(now: datetime, *, mode: Mode | None = None) -> float:
    """Return for how long the oldest delivery that waits for a worker is due, or 0. mode: as in `backlog`.

    Deliveries of paused and unverified endpoints, and of destinations, which get a message a minute, do not
    count, because they do not wait for a worker. Those of a merchant with a post in flight do not count
    either, because that merchant may be at its limit. An expired lease is no post in flight.
    """
    (due_at,) = rows.run(OLDEST_DUE, ALL_ENDPOINTS | {"now": now, "mode": mode}).fetchone()
    return 0.0 if due_at is None else round((now - due_at).total_seconds(), 3)
