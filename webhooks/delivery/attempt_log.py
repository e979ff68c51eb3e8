"""Record each attempt, the new state of its delivery and the health of its endpoint."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db import DatabaseError, transaction

from core.database import rows
from webhooks import endpoints, events
from webhooks.delivery import circuit_breaker, metrics, retry_schedule
from webhooks.delivery.queue import Lease
from webhooks.http import client
from webhooks.models import (
    DeliveryAttempt,
    DeliveryState,
    DeliveryTrigger,
    DisabledReason,
    EndpointAction,
    EndpointActionType,
    EndpointHealth,
    StaffEventType,
)

log = logging.getLogger("webhooks.delivery.attempt_log")
HTTP_GONE = 410
HEALTH_FIELDS = [field.attname for field in EndpointHealth._meta.concrete_fields if not field.primary_key]


@dataclass(frozen=True, slots=True)
class DeliveryResult:
    lease: Lease
    post_result: client.PostResult
    started_at: datetime
    ended_at: datetime
    request_id: str = ""


def record(results: Sequence[DeliveryResult]) -> set[str]:
    """Record results in one commit. Return the ids of the deliveries whose lease is still valid.

    Without a valid lease only the attempt is recorded, because another worker owns the delivery. Disables
    endpoints that answered 410 or failed for five days.
    """
    with transaction.atomic():
        # Locks in this order: leases, deliveries, which only their worker updates while it has the lease,
        # then the health of endpoints, sorted. If the worker is killed before the commit, the leases expire
        # and the messages are sent again.
        recorded_ids = _update_deliveries(results)
        attempts = [
            rows.new(
                DeliveryAttempt,
                delivery_id=delivery_id,
                number=each.lease.attempt,
                trigger=each.lease.trigger,
                started_at=each.started_at,
                duration_ms=each.post_result.duration_ms,
                status=each.post_result.status,
                error=each.post_result.error,
                peer=each.post_result.peer or "",
                excerpt=each.post_result.excerpt,
                request_id=each.request_id,
            )
            for each in results
            for delivery_id in each.lease.delivery_ids
        ]
        rows.insert_many(attempts)
        to_disable = _update_health(results)
    metrics.count_attempts(attempts)
    for result, reason in to_disable:
        endpoint_id = result.lease.endpoint.id
        try:
            # In a separate commit, because an endpoint is locked before its health.
            endpoints.disable(
                endpoint_id=endpoint_id,
                reason=reason,
                now=result.ended_at,
                attempt_started_at=result.started_at,
            )
        except DatabaseError as error:
            # The results are recorded, and the next failed attempt has the same reason.
            log.warning("Endpoint %s was not disabled: %s", endpoint_id, type(error).__name__)
    return recorded_ids


def _update_deliveries(results: Sequence[DeliveryResult]) -> set[str]:
    outcomes = []
    for each in results:
        state, due_at = _next_state(each)
        finished_at = None if state == DeliveryState.PENDING else each.ended_at
        lease, ended = each.lease, (state.value, due_at, finished_at)
        outcomes += [
            (lease.endpoint.id, delivery_id, lease.lease_id, lease.attempt, *ended)
            for delivery_id in lease.delivery_ids
        ]
    updated = rows.run(
        """
        WITH ended AS (
            DELETE FROM webhooks_deliverylease l
            USING unnest(%s::text[], %s::text[], %s::uuid[], %s::smallint[], %s::text[], %s::timestamptz[],
                %s::timestamptz[]) n (endpoint_id, id, lease_id, attempt, state, due_at, finished_at)
            WHERE l.endpoint_id = n.endpoint_id AND l.delivery_id = n.id AND l.lease_id = n.lease_id
            RETURNING n.*
        )
        UPDATE webhooks_delivery d
        SET state = n.state, attempt_count = n.attempt, due_at = coalesce(n.due_at, d.due_at),
            finished_at = n.finished_at
        FROM ended n WHERE d.id = n.id
        RETURNING d.id
        """,
        [list(column) for column in zip(*outcomes, strict=True)],
    )
    return {delivery_id for (delivery_id,) in updated.fetchall()}


def _next_state(result: DeliveryResult) -> tuple[DeliveryState, datetime | None]:
    """The new state, and when the delivery is due again."""
    lease, post_result = result.lease, result.post_result
    if post_result.error == "":
        return DeliveryState.SUCCEEDED, None
    if lease.trigger == DeliveryTrigger.MANUAL:
        return DeliveryState.FAILED, None
    wait = retry_schedule.retry_delay(lease.attempt, retry_after=post_result.retry_after, now=result.ended_at)
    if wait is None or post_result.error == "blocked":
        return DeliveryState.FAILED, None
    return DeliveryState.PENDING, result.ended_at + timedelta(seconds=wait)


def _update_health(results: Sequence[DeliveryResult]) -> list[tuple[DeliveryResult, DisabledReason]]:
    """Update the health of all endpoints. Return the results that require to disable an endpoint."""
    locked = rows.find(
        EndpointHealth,
        "WHERE t.endpoint_id = ANY(%s) ORDER BY t.endpoint_id FOR NO KEY UPDATE",
        [each.lease.endpoint.id for each in results],
    )
    healths = {health.endpoint_id: health for health in locked}
    reasons: dict[str, tuple[DeliveryResult, DisabledReason]] = {}
    for each in results:
        endpoint_id, error = each.lease.endpoint.id, each.post_result.error
        health = healths.get(endpoint_id)
        if health is None:
            continue  # without it the results of other endpoints are still recorded
        health.attempted_at = each.ended_at
        if health.reset_at is not None and each.started_at < health.reset_at:
            continue  # it does not count
        action_type = circuit_breaker.record_attempt(
            health,
            error=error,
            duration_ms=each.post_result.duration_ms,
            started_at=each.started_at,
            now=each.ended_at,
        )
        if health.verified_at is None and error == "":
            health.verified_at = each.ended_at
            EndpointAction.record(endpoint_id, EndpointActionType.VERIFIED, now=each.ended_at)
        if action_type is not None:
            detail = circuit_breaker.pause_reason(health) if action_type is EndpointActionType.PAUSED else ""
            EndpointAction.record(endpoint_id, action_type, now=each.ended_at, detail=detail)
            if action_type is EndpointActionType.PAUSED:
                events.tell_staff(
                    StaffEventType.ENDPOINT_PAUSED,
                    endpoint_id,
                    each.ended_at,
                    merchant_id=each.lease.endpoint.merchant_id,
                    detail=": ".join(filter(None, [each.lease.merchant_name, detail])),
                )
        if each.post_result.status == HTTP_GONE:
            reasons[endpoint_id] = (each, DisabledReason.GONE)
        elif circuit_breaker.should_disable(health, each.ended_at):
            reasons.setdefault(endpoint_id, (each, DisabledReason.FAILING))
    rows.update_rows(locked, HEALTH_FIELDS)
    return list(reasons.values())
