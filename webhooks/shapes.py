"""Webhooks, deliveries and events as merchants see them."""

from typing import Any

import orjson

from core.clock import iso, iso_or_none
from webhooks.models import (
    UNFINISHED_STATES,
    Delivery,
    DeliveryAttempt,
    DeliveryState,
    Endpoint,
    EndpointHealth,
)

MAX_RESPONSE_LENGTH = 500


def webhook_object(endpoint: Endpoint) -> dict[str, Any]:
    """The webhook object. It never contains the secret."""
    health = getattr(endpoint, "health", None) or EndpointHealth()
    return {
        "webhook_id": endpoint.id,
        "url": endpoint.url,
        "events": endpoint.events,
        "status": endpoint.status,
        "disabled_reason": endpoint.disabled_reason or None,
        "verification": health.verification.value,
        "last_ping_status": endpoint.last_ping_status,
        "health": _health(health),
        "created_at": iso(endpoint.created_at),
    }


def _health(health: EndpointHealth) -> dict[str, Any]:
    return {
        "state": health.state.value,
        "consecutive_failures": health.consecutive_failures,
        "failing_since": iso_or_none(health.failing_since),
        "paused_until": iso_or_none(health.paused_until),
        "last_error": health.last_error or None,
    }


def delivery_object(delivery: Delivery) -> dict[str, Any]:
    """A delivery with its attempts, the oldest first. A leased delivery is shown as pending."""
    is_waiting = delivery.state in UNFINISHED_STATES
    return {
        "delivery_id": delivery.id,
        "webhook_id": delivery.endpoint_id,
        "event_id": delivery.event_id,
        "event": delivery.event_type,
        "state": DeliveryState.PENDING.value if is_waiting else delivery.state,
        "trigger": delivery.trigger.value,
        "created_at": iso(delivery.created_at),
        "next_attempt_at": iso(delivery.due_at) if is_waiting else None,
        "finished_at": iso_or_none(delivery.finished_at),
        "attempts": [_attempt(attempt) for attempt in delivery.attempt_set.all()],
    }


def _attempt(attempt: DeliveryAttempt) -> dict[str, Any]:
    return {
        "number": attempt.number,
        "started_at": iso(attempt.started_at),
        "duration_ms": attempt.duration_ms,
        "http_status": attempt.status,
        "error": attempt.error or None,
        "response": attempt.excerpt[:MAX_RESPONSE_LENGTH],
    }


def event_object(body: bytes, sequence: int | None) -> dict[str, Any]:
    """The event as it was sent, and its place in the feed."""
    event: dict[str, Any] = orjson.loads(body)
    return event | {"sequence": sequence}
