"""Webhooks, deliveries and events as merchants see them."""

from typing import Annotated, Any, TypedDict

import orjson

from core.clock import iso, iso_or_none
from core.http.objects import (
    DeliveryId,
    DestinationId,
    EventId,
    Instant,
    Schema,
    WebhookId,
    between,
    id_schema,
    one_of,
    up_to,
)
from webhooks import models
from webhooks.destinations import TYPES
from webhooks.filters import EVENT_TYPES
from webhooks.http.url_check import MAX_URL_LENGTH
from webhooks.redelivery import MAX_REPLAYED

MAX_RESPONSE_LENGTH = 500
MAX_SECRET_LENGTH = 255
MAX_SEQUENCE = 10**15
QUIET_HOURS_SCHEMA = Schema(pattern=models.QUIET_HOURS)


class HealthObject(TypedDict):
    """How a webhook answered lately."""

    state: Annotated[
        str, one_of(models.HealthState), "paused: gets nothing until paused_until, and uses no attempts."
    ]
    consecutive_failures: Annotated[int, between(0)]
    failing_since: Instant | None
    paused_until: Annotated[
        Instant | None, "From then on it gets one delivery at a time. A success ends the pause."
    ]
    last_error: Annotated[str | None, up_to(20), "Such as timeout, dns, tls_cert or http_5xx."]


class _Endpoint(TypedDict):
    events: Annotated[
        list[Annotated[str, one_of(models.EventType)]], {"maxItems": len(models.EventType), "minItems": 1}
    ]
    status: Annotated[str, one_of(models.EndpointStatus)]
    disabled_reason: Annotated[
        str | None,
        one_of(models.DisabledReason),
        "gone: it answered 410. failing: for five days. merchant, staff: who did it. moved: the merchant.",
    ]
    health: HealthObject
    created_at: Instant


class WebhookObject(_Endpoint):
    webhook_id: WebhookId
    url: Annotated[str, {"format": "uri", "maxLength": MAX_URL_LENGTH}]
    verification: Annotated[
        str,
        one_of(models.VerificationStatus),
        "unverified: the URL has not answered a signed request with 2xx so far. It gets one "
        "attempt at a time and four a minute; others wait. A 2xx to a ping, test or event verifies it.",
    ]
    last_ping_status: Annotated[
        int | None,
        between(100, 599),
        "The HTTP status of the answer to `webhook.ping`, when the URL was registered or changed. "
        "Null if none was sent.",
    ]


class WebhookSecret(TypedDict):
    webhook_id: WebhookId
    secret: Annotated[str, up_to(MAX_SECRET_LENGTH), "Signs every message."]


class DestinationObject(_Endpoint):
    """A LINE chat or an email address that gets messages about events."""

    destination_id: DestinationId
    type: Annotated[str, one_of(TYPES)]
    to: Annotated[str, up_to(254), "The LINE user, group or room, or the email address."]
    language: Annotated[str, one_of(models.Language), "Of the messages."]
    quiet_hours: Annotated[str | None, QUIET_HOURS_SCHEMA, "In Bangkok. Messages wait for their end."]


class PingData(TypedDict):
    """The data of a `webhook.ping`."""

    webhook_id: WebhookId


class EventObject(TypedDict):
    """An event as it was sent, and its place in the feed."""

    event: Annotated[str, one_of(EVENT_TYPES)]
    event_id: EventId
    data: Annotated[dict[str, Any], "As in the message of this type."]
    timestamp: Instant
    sequence: Annotated[
        int | None,
        between(1, MAX_SEQUENCE),
        "The place in the feed: 1, 2, 3 and so on, without gaps. It never changes. Null only while "
        "many older events wait for theirs. Messages do not have it.",
    ]


class DeliveryAttemptObject(TypedDict):
    """One HTTP request or email and its result."""

    number: Annotated[int, between(1), "A replay counts from 1 again."]
    started_at: Instant
    duration_ms: Annotated[int | None, between(0)]
    http_status: Annotated[
        int | None, between(100, 999), "Null without a response; of a mail server the code of its reply."
    ]
    error: Annotated[str | None, up_to(20), "Such as timeout, dns, tls_cert or http_5xx; null for a 2xx."]
    response: Annotated[str, up_to(MAX_RESPONSE_LENGTH), "The beginning of the response."]


class DeliveryObject(TypedDict):
    """An event on its way. A message to a destination that tells of several is an attempt of each."""

    delivery_id: DeliveryId
    webhook_id: Annotated[str, id_schema("(wh|dst)_"), "The webhook, or the destination."]
    event_id: EventId
    event: Annotated[str, one_of(EVENT_TYPES)]
    state: Annotated[
        str, one_of(models.DeliveryState), "held: waits for a replay, because the webhook was disabled."
    ]
    trigger: Annotated[str, one_of(models.DeliveryTrigger), "manual: by test or redeliver, with one attempt."]
    created_at: Instant
    next_attempt_at: Annotated[Instant | None, "Null if no attempt follows."]
    finished_at: Instant | None
    attempts: list[DeliveryAttemptObject]


class ReplayResultObject(TypedDict):
    """The result of a replay."""

    replayed: Annotated[int, between(0, MAX_REPLAYED), "Events."]
    has_more: Annotated[bool, "Another replay sends the rest."]


def webhook_object(endpoint: models.Endpoint) -> WebhookObject:
    """The webhook object. It never contains the secret."""
    return {
        "webhook_id": endpoint.id,
        "url": endpoint.url,
        "verification": endpoint.health.verification.value,
        "last_ping_status": endpoint.last_ping_status,
        **_endpoint(endpoint),
    }


def destination_object(endpoint: models.Endpoint) -> DestinationObject:
    """The destination object. It never contains the token."""
    return {
        "destination_id": endpoint.id,
        "type": endpoint.type,
        "to": endpoint.recipient,
        "language": endpoint.language,
        "quiet_hours": endpoint.quiet_hours or None,
        **_endpoint(endpoint),
    }


def _endpoint(endpoint: models.Endpoint) -> _Endpoint:
    health = endpoint.health
    return {
        "events": endpoint.events,
        "status": endpoint.status,
        "disabled_reason": endpoint.disabled_reason or None,
        "health": {
            "state": health.state.value,
            "consecutive_failures": health.consecutive_failures,
            "failing_since": iso_or_none(health.failing_since),
            "paused_until": iso_or_none(health.paused_until),
            "last_error": health.last_error or None,
        },
        "created_at": iso(endpoint.created_at),
    }


def delivery_object(delivery: models.Delivery) -> DeliveryObject:
    """A delivery with its attempts, the oldest first."""
    is_waiting = delivery.state == models.DeliveryState.PENDING
    return {
        "delivery_id": delivery.id,
        "webhook_id": delivery.endpoint_id,
        "event_id": delivery.event_id,
        "event": delivery.event_type,
        "state": str(delivery.state),
        "trigger": delivery.trigger.value,
        "created_at": iso(delivery.created_at),
        "next_attempt_at": iso(delivery.due_at) if is_waiting else None,
        "finished_at": iso_or_none(delivery.finished_at),
        "attempts": [
            {
                "number": attempt.number,
                "started_at": iso(attempt.started_at),
                "duration_ms": attempt.duration_ms,
                "http_status": attempt.status,
                "error": attempt.error or None,
                "response": attempt.excerpt[:MAX_RESPONSE_LENGTH],
            }
            for attempt in delivery.attempt_set.all()
        ],
    }


def event_object(body: bytes, sequence: int | None) -> EventObject:
    """The event as it was sent, and its place in the feed."""
    event: EventObject = orjson.loads(body)
    event["sequence"] = sequence
    return event
