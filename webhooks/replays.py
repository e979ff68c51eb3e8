"""Tell an endpoint again, because somebody asks for it."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Exists, Max, OuterRef, Q, QuerySet

from core import ids, origin
from core.errors import ApiError
from merchants.models import Merchant
from webhooks import acts, doorbell, endpoints, shapes
from webhooks.errors import (
    DeliveryNotFound,
    DeliveryNotRedeliverable,
    WebhookNotReplayable,
    WebhookNotTestable,
)
from webhooks.event_types import PING
from webhooks.models import Act, Delivery, DeliveryState, Endpoint, EndpointStatus, Event

REPLAYED_AT_ONCE = 10_000
ON_ITS_WAY = [DeliveryState.PENDING, DeliveryState.LEASED]


@dataclass(frozen=True, slots=True)
class Replay:
    """How many events a replay sends, and whether more are left for another one."""

    replayed: int
    has_more: bool


@transaction.atomic
def test(*, merchant: Merchant, webhook_id: str, now: datetime) -> Delivery:
    """Send a `webhook.ping` the way every message goes. Raises WebhookNotFound, WebhookNotTestable."""
    endpoint = _active(merchant, webhook_id, WebhookNotTestable)
    event_id = ids.new("evt_", now)
    body = shapes.message(type=PING, event_id=event_id, data={"webhook_id": endpoint.id}, at=now)
    cause = origin.current()
    event = Event.objects.create(
        id=event_id,
        merchant=merchant,
        type=PING,
        subject_id=endpoint.id,
        body=body,
        actor=cause.actor,
        request_id=cause.request_id,
        created_at=now,
    )
    return _send_again(event, endpoint, now)


@transaction.atomic
def redeliver(*, merchant: Merchant, webhook_id: str, delivery_id: str, now: datetime) -> Delivery:
    """One more attempt under the same event id, as a delivery of its own: the schedule stays as it is.

    Raises WebhookNotFound, DeliveryNotFound, DeliveryNotRedeliverable.
    """
    endpoint = endpoints.find_locked(merchant=merchant, webhook_id=webhook_id)
    told = _find(endpoint, delivery_id)
    if endpoint.status != EndpointStatus.ACTIVE:
        raise DeliveryNotRedeliverable()
    return _send_again(told.event, endpoint, now)


@transaction.atomic
def replay(*, merchant: Merchant, webhook_id: str, since: datetime, now: datetime) -> Replay:
    """Send what happened from `since` on and was never taken, each with a schedule from its beginning.

    That is what failed or was held, and events of the endpoint's types that it was never to be told of.
    The oldest come first, ten thousand at once. Raises WebhookNotFound, WebhookNotReplayable.
    """
    endpoint = _active(merchant, webhook_id, WebhookNotReplayable)
    missed = list(_missed(endpoint, since)[: REPLAYED_AT_ONCE + 1])
    chosen = missed[:REPLAYED_AT_ONCE]
    known = Delivery.objects.filter(endpoint=endpoint, resend=0, event_id__in=chosen)
    told = set(known.values_list("event_id", flat=True))
    _begin_again(known, now)
    _tell(endpoint, (event_id for event_id in chosen if event_id not in told), now)
    return _replayed(endpoint, Replay(len(chosen), has_more=len(missed) > len(chosen)), acts.MERCHANT, now)


@transaction.atomic
def replay_held(*, endpoint_id: str, actor: str, now: datetime) -> Replay:
    """Send what was held while an endpoint was disabled, each with a schedule from its beginning.

    The oldest come first, ten thousand at once. Raises WebhookNotFound, WebhookNotReplayable.
    """
    endpoint = _active(Endpoint.objects.get(pk=endpoint_id).merchant, endpoint_id, WebhookNotReplayable)
    held = Delivery.objects.filter(endpoint=endpoint, state=DeliveryState.HELD).order_by("created_at", "id")
    chosen = list(held.values_list("pk", flat=True)[: REPLAYED_AT_ONCE + 1])
    replayed = _begin_again(Delivery.objects.filter(pk__in=chosen[:REPLAYED_AT_ONCE]), now)
    return _replayed(endpoint, Replay(replayed, has_more=len(chosen) > replayed), actor, now)


def _begin_again(deliveries: "QuerySet[Delivery]", now: datetime) -> int:
    return deliveries.update(
        state=DeliveryState.PENDING, attempts=0, due_at=now, finished_at=None, **_asked(now)
    )


def _asked(now: datetime) -> dict[str, Any]:
    """Who wants it to be told again."""
    asked = origin.current()
    return {"asked_at": now, "asked_by": asked.actor, "asked_request_id": asked.request_id}


def _replayed(endpoint: Endpoint, replay: Replay, actor: str, now: datetime) -> Replay:
    if replay.replayed:
        acts.note(endpoint.id, Act.REPLAYED, actor=actor, at=now, detail=f"events: {replay.replayed}")
        doorbell.ring_on_commit()
    return replay


def _active(merchant: Merchant, webhook_id: str, refusal: type[ApiError]) -> Endpoint:
    endpoint = endpoints.find_locked(merchant=merchant, webhook_id=webhook_id)
    if endpoint.status != EndpointStatus.ACTIVE:
        raise refusal()
    return endpoint


def _find(endpoint: Endpoint, delivery_id: str) -> Delivery:
    found: Delivery | None = None
    if ids.looks_right(delivery_id, "dlv_"):
        deliveries = Delivery.objects.filter(endpoint=endpoint).select_related("event")
        found = deliveries.filter(pk=delivery_id).first()
    if found is None:
        raise DeliveryNotFound(id=delivery_id)
    return found


def _send_again(event: Event, endpoint: Endpoint, now: datetime) -> Delivery:
    """The caller holds the endpoint's lock, so that no two get one number."""
    earlier = Delivery.objects.filter(event=event, endpoint=endpoint).aggregate(last=Max("resend"))
    delivery = _new(event.id, endpoint, now)
    delivery.event, delivery.resend = event, (earlier["last"] or 0) + 1
    delivery.save(force_insert=True)
    doorbell.ring_on_commit()
    return delivery


def _missed(endpoint: Endpoint, since: datetime) -> "QuerySet[Event, str]":
    told = Delivery.objects.filter(event=OuterRef("pk"), endpoint=endpoint)
    waiting = Q(resend=0, state__in=ON_ITS_WAY)
    events = Event.objects.filter(
        ~Exists(told.filter(waiting | Q(state=DeliveryState.SUCCEEDED))),
        Exists(told.filter(resend=0)) | Q(type__in=endpoint.events),
        merchant=endpoint.merchant_id,
        created_at__gte=since,
    )
    missed: QuerySet[Event, str] = events.order_by("created_at", "id").values_list("pk", flat=True)
    return missed


def _tell(endpoint: Endpoint, event_ids: Iterable[str], now: datetime) -> None:
    Delivery.objects.bulk_create([_new(event_id, endpoint, now) for event_id in event_ids], batch_size=1000)


def _new(event_id: str, endpoint: Endpoint, now: datetime) -> Delivery:
    return Delivery(
        id=ids.new("dlv_", now),
        event_id=event_id,
        endpoint=endpoint,
        due_at=now,
        created_at=now,
        **_asked(now),
    )
