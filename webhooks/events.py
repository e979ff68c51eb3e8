"""Publish events: store the event and its deliveries in the commit of the change itself."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Model

from core import ids, request_context, rows
from merchants.models import Merchant
from webhooks import shapes
from webhooks.delivery import wakeup
from webhooks.errors import EventNotFound
from webhooks.models import Delivery, Event, EventType


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event to publish: `data` is the `data` of the notification."""

    merchant_id: str
    type: str
    subject_id: str
    data: dict[str, Any]
    created_at: datetime


@dataclass(frozen=True, slots=True)
class _Subscriber:
    endpoint_id: str
    types: Sequence[str]


def find(*, merchant: Merchant, event_id: str) -> Event:
    """Raises EventNotFound."""
    found: Event | None = None
    if ids.looks_right(event_id, "evt_"):
        found = rows.fetch(Event, id=event_id, merchant_id=merchant.id)
    if found is None:
        raise EventNotFound(id=event_id)
    return found


def prepare(new_event: NewEvent) -> list[Model]:
    """The event and a delivery for each endpoint that subscribes to it, in the order of insertion.

    Costs one query. The caller inserts the rows and wakes the workers after the commit.
    """
    return _event_and_deliveries(
        new_event, _subscribers([new_event.merchant_id]).get(new_event.merchant_id, [])
    )


def publish(new_event: NewEvent) -> None:
    """Publish an event in the caller's transaction."""
    publish_many([new_event])


def publish_many(new_events: Sequence[NewEvent]) -> None:
    """Publish events in the caller's transaction: one with two statements, many with three."""
    subscribers = _subscribers({new_event.merchant_id for new_event in new_events})
    prepared = [
        row
        for each in new_events
        for row in _event_and_deliveries(each, subscribers.get(each.merchant_id, []))
    ]
    if len(new_events) == 1:
        rows.insert_together(prepared)
    else:
        rows.copy_in([row for row in prepared if isinstance(row, Event)])
        rows.copy_in([row for row in prepared if isinstance(row, Delivery)])
    _wake_for(prepared)


def has_deliveries(prepared: Iterable[Model]) -> bool:
    """Whether the prepared rows include a delivery."""
    return any(isinstance(row, Delivery) for row in prepared)


def _wake_for(prepared: Iterable[Model]) -> None:
    if has_deliveries(prepared):
        wakeup.wake_on_commit()


def _subscribers(merchant_ids: Iterable[str]) -> dict[str, list[_Subscriber]]:
    found: dict[str, list[_Subscriber]] = {}
    known = rows.run(
        "SELECT merchant_id, id, events FROM webhooks_endpoint"
        " WHERE merchant_id = ANY(%s) AND deleted_at IS NULL",
        [list(merchant_ids)],
    )
    for merchant_id, *subscriber in known.fetchall():
        found.setdefault(merchant_id, []).append(_Subscriber(*subscriber))
    return found


def _event_and_deliveries(new_event: NewEvent, subscribers: Iterable[_Subscriber]) -> list[Model]:
    event = _event(new_event)
    interested = (subscriber for subscriber in subscribers if event.type in subscriber.types)
    return [event, *(_delivery(event, subscriber) for subscriber in interested)]


def _event(new_event: NewEvent) -> Event:
    event_type, event_id, at = (
        EventType(new_event.type),
        ids.new("evt_", new_event.created_at),
        new_event.created_at,
    )
    cause = request_context.current()
    return Event(
        id=event_id,
        merchant_id=new_event.merchant_id,
        type=event_type.value,
        subject_id=new_event.subject_id,
        body=shapes.event_body(type=event_type.value, event_id=event_id, data=new_event.data, at=at),
        actor=cause.actor,
        request_id=cause.request_id,
        created_at=at,
    )


def _delivery(event: Event, subscriber: _Subscriber) -> Delivery:
    # Pending even where the endpoint is disabled: it may be enabled in this moment, and workers hold it else.
    return Delivery(
        id=ids.new("dlv_", event.created_at),
        event_id=event.id,
        endpoint_id=subscriber.endpoint_id,
        due_at=event.created_at,
        created_at=event.created_at,
    )
