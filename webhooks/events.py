"""Publish events: store the event and its deliveries in the commit of the change itself."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson
from django.db.models import Model

from core import ids, request_context
from core.clock import iso
from core.database import rows
from core.observing import telemetry
from merchants.models import Merchant
from webhooks import bodies, models, wakeup
from webhooks.errors import EventNotFound


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event to publish. `data` is the `data` of its message. Without a merchant it is the operator's."""

    merchant_id: str | None
    type: str
    subject_id: str
    data: Mapping[str, Any]
    created_at: datetime


def find(*, merchant: Merchant, event_id: str) -> models.Event:
    """Find an event of the merchant. Raises EventNotFound."""
    return ids.find(event_id, "evt_", models.Event.objects.filter(merchant=merchant), EventNotFound)


# The id of an endpoint of a merchant, and the event types that it subscribes to.
Subscription = tuple[str, Sequence[str]]
# SQL of the subscriptions of the merchant `m`: a list of pairs, or NULL.
SUBSCRIPTIONS = (
    "(SELECT json_agg(json_build_array(e.id, e.events)) FROM webhooks_endpoint e"
    " WHERE e.merchant_id = m.id AND e.deleted_at IS NULL)"
)


def prepare(new_event: NewEvent, subscriptions: Iterable[Subscription], parent: str = "") -> list[Model]:
    """Build the event, then a delivery for each endpoint that subscribes to it. parent: see `telemetry`.

    The caller inserts the rows in this order and wakes the workers after the commit. Raises ValueError for an
    unknown event type.
    """
    (models.StaffEventType if new_event.merchant_id is None else models.EventType)(new_event.type)
    event = build(new_event, parent)
    deliveries = [
        new_delivery(event.id, event.type, endpoint_id, event.created_at)
        for endpoint_id, types in subscriptions
        if event.type in types
    ]
    return [event, *deliveries]


def publish(new_event: NewEvent) -> None:
    """Publish an event in the caller's transaction."""
    publish_many([new_event])


def publish_many(new_events: Sequence[NewEvent]) -> None:
    """Publish events in the caller's transaction: one with two statements, many with three."""
    subscriptions = subscriptions_of({each.merchant_id for each in new_events if each.merchant_id})
    parents = _parents(new_events) if telemetry.is_on() else {}
    prepared = [
        row
        for each in new_events
        for row in prepare(
            each, subscriptions.get(each.merchant_id or "", []), parents.get(each.subject_id, "")
        )
    ]
    if len(new_events) == 1:
        rows.insert_together(prepared)
    else:
        rows.copy_in([row for row in prepared if isinstance(row, models.Event)])
        rows.copy_in([row for row in prepared if isinstance(row, models.Delivery)])
    if has_deliveries(prepared):
        wakeup.wake_on_commit()


def tell_staff(
    event_type: models.StaffEventType,
    subject_id: str,
    now: datetime,
    *,
    merchant_id: str | None = None,
    amount: int | None = None,
    detail: str = "",
) -> None:
    """Tell the operator's destinations, in the transaction of what they hear of. Without one, store nothing.

    They hear of no test merchant. amount: satang. detail: words for staff, without personal data.
    """
    subscribed = rows.run(
        "SELECT id, events FROM webhooks_endpoint"
        " WHERE merchant_id IS NULL AND deleted_at IS NULL AND %s = ANY(events)"
        " AND NOT EXISTS (SELECT FROM merchants_merchant WHERE id = %s AND mode = 'test')",
        [event_type.value, merchant_id],
    ).fetchall()
    if subscribed:
        data = {"subject_id": subject_id, "amount": amount, "detail": detail}
        rows.insert_together(prepare(NewEvent(None, event_type, subject_id, data, now), subscribed))
        wakeup.wake_on_commit()


def has_deliveries(prepared: Iterable[Model]) -> bool:
    """Whether the prepared rows include a delivery."""
    return any(isinstance(row, models.Delivery) for row in prepared)


def build(new_event: NewEvent, parent: str = "") -> models.Event:
    """Build an event. Its body is serialised once, here: every attempt sends and signs these bytes."""
    event_id, event_type = ids.new("evt_", new_event.created_at), str(new_event.type)
    message = {
        "event": event_type,
        "event_id": event_id,
        "data": new_event.data,
        "timestamp": iso(new_event.created_at),
    }
    return rows.new(
        models.Event,
        id=event_id,
        merchant_id=new_event.merchant_id,
        type=event_type,
        subject_id=new_event.subject_id,
        packed_body=bodies.pack(orjson.dumps(message), event_id + new_event.subject_id),
        created_at=new_event.created_at,
        traceparent=telemetry.record_event(event_type, event_id, new_event.subject_id, parent),
        **request_context.columns(),
    )


def build_ping(endpoint: models.Endpoint, now: datetime) -> models.Event:
    """Build the event that probes and tests an endpoint or a destination."""
    is_webhook = endpoint.type == models.EndpointType.WEBHOOK
    event_type, key = (
        (models.PING, "webhook_id") if is_webhook else (models.DESTINATION_PING, "destination_id")
    )
    return build(NewEvent(endpoint.merchant_id, event_type, endpoint.id, {key: endpoint.id}, now))


def subscriptions_of(merchant_ids: Iterable[str]) -> dict[str, list[Subscription]]:
    found: dict[str, list[Subscription]] = {}
    endpoints = rows.run(
        "SELECT merchant_id, id, events FROM webhooks_endpoint"
        " WHERE merchant_id = ANY(%s) AND deleted_at IS NULL",
        [list(merchant_ids)],
    )
    for merchant_id, endpoint_id, types in endpoints.fetchall():
        found.setdefault(merchant_id, []).append((endpoint_id, types))
    return found


def _parents(new_events: Sequence[NewEvent]) -> dict[str, str]:
    """The place in its trace of the first event of each subject."""
    found = rows.run(
        "SELECT DISTINCT ON (subject_id) subject_id, traceparent FROM webhooks_event"
        " WHERE subject_id = ANY(%s) AND traceparent IS NOT NULL ORDER BY subject_id, id",
        [[each.subject_id for each in new_events]],
    )
    return dict(found.fetchall())


def new_delivery(
    event_id: str, event_type: str, endpoint_id: str, at: datetime, **fields: Any
) -> models.Delivery:
    """Build a delivery that is due at once."""
    # Pending also for a disabled endpoint, which may become active now. Otherwise a worker holds it.
    return rows.new(
        models.Delivery,
        id=ids.new("dlv_", at),
        event_id=event_id,
        event_type=event_type,
        endpoint_id=endpoint_id,
        due_at=at,
        created_at=at,
        **fields,
    )
