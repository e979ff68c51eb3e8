"""The backlog of deliveries. The cost grows with the number of endpoints, not of deliveries."""

from dataclasses import dataclass
from datetime import datetime

from core import rows

# Counting ends here: whoever reads a larger number would do the same.
MAX_COUNTED = 100_000

# Hops along an index from endpoint to endpoint, as `webhooks.delivery.claim_query` does.
_WAITING_ENDPOINTS = """
    WITH RECURSIVE waiting (endpoint_id) AS (
        (SELECT endpoint_id FROM webhooks_delivery WHERE state = 'pending' ORDER BY endpoint_id LIMIT 1)
        UNION ALL
        SELECT (
            SELECT d.endpoint_id FROM webhooks_delivery d
            WHERE d.state = 'pending' AND d.endpoint_id > w.endpoint_id ORDER BY d.endpoint_id LIMIT 1
        ) FROM waiting w WHERE w.endpoint_id IS NOT NULL
    ), open_endpoints AS MATERIALIZED (
        SELECT e.id, e.merchant_id, h.paused_until IS NOT NULL OR h.verified_at IS NULL AS is_paused
        FROM waiting w JOIN webhooks_endpoint e ON e.id = w.endpoint_id
        LEFT JOIN webhooks_endpointhealth h ON h.endpoint_id = e.id
        WHERE e.status = 'active' AND e.deleted_at IS NULL
    )
"""
_COUNT = """
    SELECT count(*) FROM (
        SELECT FROM open_endpoints a CROSS JOIN LATERAL (
            SELECT FROM webhooks_delivery d
            WHERE d.endpoint_id = a.id AND d.state = 'pending' AND d.due_at <= %s LIMIT %s
        ) due
        WHERE a.is_paused = %s LIMIT %s
    ) counted
"""
_OLDEST = """
    SELECT min(longest.due_at) FROM open_endpoints a CROSS JOIN LATERAL (
        SELECT d.due_at FROM webhooks_delivery d
        WHERE d.endpoint_id = a.id AND d.state = 'pending' AND d.due_at <= %s ORDER BY d.due_at LIMIT 1
    ) longest
    WHERE NOT a.is_paused AND NOT EXISTS (
        SELECT FROM webhooks_endpoint e JOIN webhooks_delivery f ON f.endpoint_id = e.id
        WHERE e.merchant_id = a.merchant_id AND f.state = 'leased' AND f.lease_until > clock_timestamp()
    )
"""


@dataclass(frozen=True, slots=True)
class Backlog:
    """Due deliveries: of active endpoints, and of paused or unverified ones. Up to MAX_COUNTED each."""

    due: int
    paused: int


def count(now: datetime) -> Backlog:
    sql = f"{_WAITING_ENDPOINTS} SELECT ({_COUNT}), ({_COUNT})"
    values = [now, MAX_COUNTED, False, MAX_COUNTED, now, MAX_COUNTED, True, MAX_COUNTED]
    return Backlog(*rows.run(sql, values).fetchone())


def oldest_due_seconds(now: datetime) -> float:
    """How long the delivery that has waited longest for a worker is overdue; 0 when none is.

    Not counted: an endpoint that is paused or unverified, and all endpoints of a merchant with a post under
    way, because they wait for their merchant's share and not for a worker. A lease that has run out is no
    post.
    """
    (due_at,) = rows.run(_WAITING_ENDPOINTS + _OLDEST, [now]).fetchone()
    return 0.0 if due_at is None else round((now - due_at).total_seconds(), 3)
