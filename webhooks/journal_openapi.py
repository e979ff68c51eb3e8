"""The operations on events and deliveries, as the OpenAPI document tells them."""

from typing import Any

from core.openapi import Link, Operation, Shown, Tag
from core.scopes import Scope
from webhooks.errors import (
    DeliveryNotFound,
    DeliveryNotRedeliverable,
    EventNotFound,
    WebhookNotFound,
    WebhookNotReplayable,
    WebhookNotTestable,
)
from webhooks.event_types import PING
from webhooks.journal import (
    DeliveryList,
    DeliveryObject,
    DeliveryQuery,
    EventList,
    EventObject,
    EventQuery,
    ReplayObject,
    ReplayRequest,
)
from webhooks.openapi import WEBHOOK

_PAGE = {"total": 1, "limit": 20, "offset": 0}
EVENT: dict[str, Any] = {
    "event": "payment.succeeded",
    "event_id": "evt_0oDFPazyVRoGTTDIuRe7QK7m3b4",
    "data": {"payment_id": "pay_0oDFPZjiZAWmp6O2BO6aMzhgtUt", "status": "succeeded", "amount": 150_000},
    "timestamp": "2026-11-21T03:05:42.310Z",
}
ASKED = {
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
DELIVERY = ASKED | {
    "state": "succeeded",
    "trigger": "auto",
    "created_at": EVENT["timestamp"],
    "next_attempt_at": None,
    "finished_at": "2026-11-21T03:05:42.405Z",
    "attempts": [_ATTEMPT],
}
_EVENT_LINK = Link("get_event", {"event_id": "$response.body#/event_id"})
_DELIVERIES_LINK = Link("list_webhook_deliveries", {"webhook_id": "$response.body#/webhook_id"})

list_events = Operation(
    name="list_events",
    tag=Tag.WEBHOOKS,
    scope=Scope.PAYMENTS_READ,
    summary="List events",
    description="Everything that happened, newest first, whether anybody was told or not.",
    query=EventQuery,
    answer=Shown(EventList, {"events": [EVENT], **_PAGE}),
)
get_event = Operation(
    name="get_event",
    tag=Tag.WEBHOOKS,
    scope=Scope.PAYMENTS_READ,
    summary="Retrieve an event",
    description="Byte for byte the body of its message.",
    answer=Shown(EventObject, EVENT),
    refusals=(EventNotFound,),
)
list_deliveries = Operation(
    name="list_webhook_deliveries",
    tag=Tag.WEBHOOKS,
    scope=Scope.PAYMENTS_READ,
    summary="List the deliveries of a webhook",
    description="Newest first, each with its attempts, the oldest first.",
    query=DeliveryQuery,
    answer=Shown(DeliveryList, {"deliveries": [DELIVERY], **_PAGE}),
    refusals=(WebhookNotFound,),
)
test = Operation(
    name="test_webhook",
    tag=Tag.WEBHOOKS,
    scope=Scope.WEBHOOKS_WRITE,
    summary="Test a webhook",
    description="Sends a signed `webhook.ping` the way every message goes, once. How it went is found among "
    "the deliveries.",
    answer=Shown(DeliveryObject, ASKED | {"event": PING}),
    refusals=(WebhookNotFound, WebhookNotTestable),
    links=(_EVENT_LINK, _DELIVERIES_LINK),
)
redeliver = Operation(
    name="redeliver_webhook_delivery",
    tag=Tag.WEBHOOKS,
    scope=Scope.WEBHOOKS_WRITE,
    summary="Deliver an event once more",
    description="One more attempt under the same event id, as a delivery of its own. What the schedule does "
    "with the first one stays as it is.",
    answer=Shown(DeliveryObject, ASKED),
    refusals=(WebhookNotFound, DeliveryNotFound, DeliveryNotRedeliverable),
    links=(_EVENT_LINK, _DELIVERIES_LINK),
)
replay = Operation(
    name="replay_webhook",
    tag=Tag.WEBHOOKS,
    scope=Scope.WEBHOOKS_WRITE,
    summary="Send again what was missed",
    description="Every event from `since` on that the webhook has not taken: what failed, what was held "
    "while it was disabled, and events of its types that it was never to be told of. Each starts its "
    "schedule anew. What still waits for its next attempt keeps its own. The oldest come first, 10,000 at "
    "once.",
    body=Shown(ReplayRequest, {"since": "2026-11-20T17:00:00Z"}),
    answer=Shown(ReplayObject, {"replayed": 42, "has_more": False}),
    refusals=(WebhookNotFound, WebhookNotReplayable),
)
