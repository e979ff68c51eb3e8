"""The operations on webhooks in the OpenAPI document."""

from functools import partial
from typing import Annotated, Any, NotRequired, TypedDict

from core.errors import FieldNotChangeable
from core.openapi import Answer, Body, Link, Operation, Tag, page_of
from core.paging import Limit, Offset, Page, PageQuery, Total
from core.scopes import Scope
from webhooks.errors import (
    DeliveryNotFound,
    DeliveryNotRedeliverable,
    EventNotFound,
    TooManyWebhooks,
    WebhookNotFound,
    WebhookNotReplayable,
    WebhookNotTestable,
)
from webhooks.models import PING
from webhooks.serializers import (
    DeliveryQuery,
    EventQuery,
    ReplayRequest,
    SecretRequest,
    WebhookChangeRequest,
    WebhookRequest,
)
from webhooks.shapes import (
    DeliveryObject,
    EventObject,
    ReplayResultObject,
    WebhookObject,
    WebhookSecret,
)


class _EventPage(TypedDict):
    total: Annotated[Total, "The number of all results; with `after_sequence`, of those that follow it."]
    limit: Limit
    offset: NotRequired[Annotated[Offset, "Absent with `after`, `before` or `after_sequence`."]]


_write = partial(Operation, tag=Tag.WEBHOOKS, scope=Scope.WEBHOOKS_WRITE)
_read = partial(Operation, tag=Tag.WEBHOOKS, scope=Scope.PAYMENTS_READ)
_GIVEN = {"url": "https://shop.example/hooks/qr", "events": ["payment.succeeded", "payment.failed"]}
_HEALTHY = {
    "state": "healthy",
    "consecutive_failures": 0,
    "failing_since": None,
    "paused_until": None,
    "last_error": None,
}
_PAUSED = {
    "state": "paused",
    "consecutive_failures": 12,
    "failing_since": "2026-11-21T03:04:05.123Z",
    "paused_until": "2026-11-21T03:09:41.870Z",
    "last_error": "timeout",
}
WEBHOOK = _GIVEN | {
    "webhook_id": "wh_0oDFPev2meeI9Zar81ilSZQbdAw",
    "status": "active",
    "disabled_reason": None,
    "verification": "verified",
    "last_ping_status": 200,
    "health": _HEALTHY,
    "created_at": "2026-11-21T03:04:05.123Z",
}

create = _write(
    name="create_webhook",
    summary="Configure a webhook",
    description="The URL gets one signed `webhook.ping` and must answer with any HTTP status. The secret is "
    "never part of the object.",
    body=Body(WebhookRequest, _GIVEN),
    response=Answer(WebhookObject, WEBHOOK),
    errors=(TooManyWebhooks,),
    links=(
        Link("get_webhook", "webhook_id"),
        Link("get_webhook_secret", "webhook_id"),
        Link("rotate_webhook_secret", "webhook_id"),
        Link("delete_webhook", "webhook_id"),
    ),
)
list_ = _read(
    name="list_webhooks",
    summary="List webhooks",
    description="Newest first.",
    query=PageQuery,
    response=page_of("webhooks", WebhookObject, WEBHOOK | {"health": _PAUSED}, base=Page),
)
retrieve = _read(
    name="get_webhook",
    summary="Retrieve a webhook",
    description="A webhook that fails many times in a row is paused; `health` says until when and why. A "
    "webhook that failed for five days, or answered 410, is `disabled`; `disabled_reason` says which.",
    response=Answer(WebhookObject, WEBHOOK),
    errors=(WebhookNotFound,),
)
change = _write(
    name="change_webhook",
    summary="Change a webhook",
    description="Omitted fields do not change. A new URL is checked as at creation. Events of a `disabled` "
    "webhook are held. Enabling it sends nothing; a replay does.",
    body=Body(WebhookChangeRequest, {"status": "disabled"}),
    response=Answer(WebhookObject, WEBHOOK | {"status": "disabled", "disabled_reason": "merchant"}),
    errors=(WebhookNotFound, FieldNotChangeable),
)
destroy = _write(
    name="delete_webhook",
    summary="Delete a webhook",
    description="It gets no more events.",
    errors=(WebhookNotFound,),
)
secret = _write(
    name="get_webhook_secret",
    summary="Reveal the secret of a webhook",
    description="No other operation shows it.",
    response=Answer(WebhookSecret, {"webhook_id": WEBHOOK["webhook_id"], "secret": "whsec_..."}),
    errors=(WebhookNotFound,),
)
rotate_secret = _write(
    name="rotate_webhook_secret",
    summary="Renew the secret of a webhook",
    description="For 24 hours messages are signed with the replaced secret too. After several rotations each "
    "one signs until its own 24 hours are over, at most five of them. The current secret changes "
    "nothing. The response does not contain the secret.",
    body=Body(SecretRequest, {}),
    response=Answer(WebhookObject, WEBHOOK),
    errors=(WebhookNotFound,),
    links=(Link("get_webhook_secret", "webhook_id"),),
)


EVENT: dict[str, Any] = {
    "event": "payment.succeeded",
    "event_id": "evt_0oDFPazyVRoGTTDIuRe7QK7m3b4",
    "data": {"payment_id": "pay_0oDFPZjiZAWmp6O2BO6aMzhgtUt", "status": "succeeded", "amount": 150_000},
    "timestamp": "2026-11-21T03:05:42.310Z",
    "sequence": 1042,
}
MANUAL_DELIVERY = {
    "delivery_id": "dlv_0oDFPb5YgQm2vHc8KpXtR4sWnZe",
    "webhook_id": WEBHOOK["webhook_id"],
    "event_id": EVENT["event_id"],
    "event": EVENT["event"],
    "state": "pending",
    "trigger": "manual",
    "created_at": "2026-11-21T04:00:00.000Z",
    "next_attempt_at": "2026-11-21T04:00:00.000Z",
    "finished_at": None,
    "attempts": [],
}
_ATTEMPT = {
    "number": 1,
    "started_at": "2026-11-21T03:05:42.318Z",
    "duration_ms": 87,
    "http_status": 200,
    "error": None,
    "response": "ok",
}
DELIVERY = MANUAL_DELIVERY | {
    "state": "succeeded",
    "trigger": "auto",
    "created_at": EVENT["timestamp"],
    "next_attempt_at": None,
    "finished_at": "2026-11-21T03:05:42.405Z",
    "attempts": [_ATTEMPT],
}
_EVENT_LINK = Link("get_event", "event_id")
_DELIVERIES_LINK = Link("list_webhook_deliveries", "webhook_id")

list_events = _read(
    name="list_events",
    summary="List events",
    description="All events, newest first, also those without a delivery. With `after_sequence` it is a "
    "feed: the events in the order of `sequence`, without gaps. A reader that asks again with the last "
    "`sequence` of each page gets every event once.",
    query=EventQuery,
    response=page_of("events", EventObject, EVENT, base=_EventPage),
)
get_event = _read(
    name="get_event",
    summary="Retrieve an event",
    description="The body of its message, and its `sequence`.",
    response=Answer(EventObject, EVENT),
    errors=(EventNotFound,),
)
list_deliveries = _read(
    name="list_webhook_deliveries",
    summary="List the deliveries of a webhook",
    description="Newest first, each with its attempts, the oldest first.",
    query=DeliveryQuery,
    response=page_of("deliveries", DeliveryObject, DELIVERY),
    errors=(WebhookNotFound,),
)
test = _write(
    name="test_webhook",
    summary="Test a webhook",
    description="Sends a signed `webhook.ping` as a delivery with one attempt. The list of deliveries shows "
    "the result.",
    response=Answer(DeliveryObject, MANUAL_DELIVERY | {"event": PING}),
    errors=(WebhookNotFound, WebhookNotTestable),
    links=(_EVENT_LINK, _DELIVERIES_LINK),
)
redeliver = _write(
    name="redeliver_webhook_delivery",
    summary="Redeliver an event",
    description="Creates a delivery with one attempt and the same event id. The first delivery does not "
    "change.",
    response=Answer(DeliveryObject, MANUAL_DELIVERY),
    errors=(WebhookNotFound, DeliveryNotFound, DeliveryNotRedeliverable),
    links=(_EVENT_LINK, _DELIVERIES_LINK),
)
replay = _write(
    name="replay_webhook",
    summary="Replay missed events",
    description="Sends all events since `since` that the webhook missed: failed deliveries, events that were "
    "held while it was disabled, and older events of its types without a delivery. Each gets a new retry "
    "schedule. Deliveries that wait for an attempt do not change. One request sends the oldest 10,000.",
    body=Body(ReplayRequest, {"since": "2026-11-20T17:00:00Z"}),
    response=Answer(ReplayResultObject, {"replayed": 42, "has_more": False}),
    errors=(WebhookNotFound, WebhookNotReplayable),
)
