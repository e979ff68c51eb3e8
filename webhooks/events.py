"""Write down that something happened, and who is to be told, in the commit of what happened."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import Model

from core import ids, origin, rows
from merchants.models import Merchant
from webhooks import doorbell, shapes
from webhooks.errors import EventNotFound
from webhooks.event_types import EventType
from webhooks.models import Delivery, Event


@dataclass(frozen=True, slots=True)
class Happening:
    """What merchants are to be told: `data` is the `data` of the notification."""

    merchant_id: str
    type: str
    subject_id: str
    data: dict[str, Any]
    at: datetime


@dataclass(frozen=True, slots=True)
class _Listener:
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


def draft(happening: Happening) -> list[Model]:
    """The event and a delivery for each endpoint that subscribes to it, in the order of insertion.

    Costs one query. Whoever inserts them rings the doorbell after the commit if `rings(...)` says so.
    """
    return _told(happening, _listeners([happening.merchant_id]).get(happening.merchant_id, []))


def publish(happening: Happening) -> None:
    """Tell of it in the caller's transaction: if that is rolled back, nothing happened."""
    told = draft(happening)
    rows.insert_together(told)
    _ring_for(told)


def publish_many(happenings: Sequence[Happening]) -> None:
    """`publish` for sweeps: a few statements, however many happenings."""
    listeners = _listeners({happening.merchant_id for happening in happenings})
    told = [row for each in happenings for row in _told(each, listeners.get(each.merchant_id, []))]
    happened = [row for row in told if isinstance(row, Event)]
    waiting = [row for row in told if isinstance(row, Delivery)]
    rows.copy_in(happened)
    rows.copy_in(waiting)
    _ring_for(told)


def rings(told: Iterable[Model]) -> bool:
    """Whether somebody is to be told of it."""
    return any(isinstance(row, Delivery) for row in told)


def _ring_for(told: Iterable[Model]) -> None:
    if rings(told):
        doorbell.ring_on_commit()


def _listeners(merchant_ids: Iterable[str]) -> dict[str, list[_Listener]]:
    found: dict[str, list[_Listener]] = {}
    known = rows.run(
        "SELECT merchant_id, id, events FROM webhooks_endpoint"
        " WHERE merchant_id = ANY(%s) AND deleted_at IS NULL",
        [list(merchant_ids)],
    )
    for merchant_id, *listener in known.fetchall():
        found.setdefault(merchant_id, []).append(_Listener(*listener))
    return found


def _told(happening: Happening, listeners: Iterable[_Listener]) -> list[Model]:
    event = _event(happening)
    interested = (listener for listener in listeners if event.type in listener.types)
    return [event, *(_delivery(event, listener) for listener in interested)]


def _event(happening: Happening) -> Event:
    kind, event_id, at = EventType(happening.type), ids.new("evt_", happening.at), happening.at
    cause = origin.current()
    return rows.new(
        Event,
        id=event_id,
        merchant_id=happening.merchant_id,
        type=kind.value,
        subject_id=happening.subject_id,
        body=shapes.message(type=kind.value, event_id=event_id, data=happening.data, at=at),
        actor=cause.actor,
        request_id=cause.request_id,
        created_at=at,
    )


def _delivery(event: Event, listener: _Listener) -> Delivery:
    # Pending even where the endpoint is disabled: it may be enabled in this moment, and workers hold it else.
    return rows.new(
        Delivery,
        id=ids.new("dlv_", event.created_at),
        event_id=event.id,
        endpoint_id=listener.endpoint_id,
        due_at=event.created_at,
        created_at=event.created_at,
    )
