"""Manual deliveries: test an endpoint, redeliver one event, replay missed events."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, Max, OuterRef, Q, QuerySet

from core import ids, request_context
from core.errors import ApiError
from webhooks import endpoints, errors, events, wakeup
from webhooks.filters import EVENT_TYPES
from webhooks.models import (
    Delivery,
    DeliveryState,
    Endpoint,
    EndpointAction,
    EndpointActionType,
    EndpointStatus,
    Event,
)

MAX_REPLAYED = 10_000


@dataclass(frozen=True, slots=True)
class ReplayResult:
    """How many events a replay sends, and whether another replay has more."""

    replayed: int
    has_more: bool


@transaction.atomic
def test(endpoint: Endpoint, *, now: datetime) -> Delivery:
    """Send a ping as a manual delivery. Raises WebhookNotTestable, and what `endpoints.lock` raises."""
    endpoint = _active(endpoint, errors.WebhookNotTestable)
    event = events.build_ping(endpoint, now)
    event.save(force_insert=True)
    return _create_manual_delivery(event, endpoint, now)


@transaction.atomic
def redeliver(endpoint: Endpoint, *, delivery_id: str, now: datetime) -> Delivery:
    """Send an event again with the same event id. The scheduled delivery does not change.

    Raises DeliveryNotFound, DeliveryNotRedeliverable, and what `endpoints.lock` raises.
    """
    endpoint = endpoints.lock(endpoint)
    deliveries = Delivery.objects.filter(endpoint=endpoint).select_related("event")
    delivery = ids.find(delivery_id, "dlv_", deliveries, errors.DeliveryNotFound)
    if endpoint.status != EndpointStatus.ACTIVE:
        raise errors.DeliveryNotRedeliverable()
    return _create_manual_delivery(delivery.event, endpoint, now)


@transaction.atomic
def replay(endpoint: Endpoint, *, since: datetime, now: datetime) -> ReplayResult:
    """Send all events since `since` that the endpoint missed, each with a new retry schedule.

    Missed are failed and held deliveries, and events of its types without a delivery. One call sends the
    oldest 10,000. It begins where deliveries may be deleted, because nothing says whether earlier events were
    accepted. Raises WebhookNotFound, WebhookNotReplayable.
    """
    endpoint = _active(endpoint, errors.WebhookNotReplayable)
    if days := settings.WEBHOOK_DELIVERY_RETENTION_DAYS:
        since = max(since, now - timedelta(days=days))
    missed = _missed(endpoint, since)
    chosen = dict(missed[:MAX_REPLAYED])
    known = Delivery.objects.filter(endpoint=endpoint, manual_number=0, event_id__in=chosen)
    known_ids = set(known.values_list("event_id", flat=True))
    _restart(known, now)
    Delivery.objects.bulk_create(
        [
            events.new_delivery(event_id, event_type, endpoint.id, now, **_requested(now))
            for event_id, event_type in chosen.items()
            if event_id not in known_ids
        ],
        batch_size=1000,
    )
    _record_replay(endpoint, len(chosen), now)
    return ReplayResult(len(chosen), has_more=len(missed) > len(chosen))


@transaction.atomic
def replay_held(endpoint: Endpoint, *, now: datetime) -> None:
    """Send the deliveries that were held while the endpoint was disabled, each with a new retry schedule.

    One call sends the oldest 10,000. Raises WebhookNotReplayable, and what `endpoints.lock` raises.
    """
    endpoint = _active(endpoint, errors.WebhookNotReplayable)
    held = Delivery.objects.filter(endpoint=endpoint, state=DeliveryState.HELD).order_by("created_at", "id")
    chosen = held.values_list("pk", flat=True)[:MAX_REPLAYED]
    _record_replay(endpoint, _restart(Delivery.objects.filter(pk__in=list(chosen)), now), now)


def _restart(deliveries: "QuerySet[Delivery]", now: datetime) -> int:
    return deliveries.update(
        state=DeliveryState.PENDING, attempt_count=0, due_at=now, finished_at=None, **_requested(now)
    )


def _requested(now: datetime) -> dict[str, Any]:
    """The fields that record who requested the delivery, and when."""
    return {"requested_at": now, **request_context.columns()}


def _record_replay(endpoint: Endpoint, count: int, now: datetime) -> None:
    if count:
        EndpointAction.record(endpoint.id, EndpointActionType.REPLAYED, now=now, detail=f"events: {count}")
        wakeup.wake_on_commit()


def _active(endpoint: Endpoint, refusal: type[ApiError]) -> Endpoint:
    endpoint = endpoints.lock(endpoint)
    if endpoint.status != EndpointStatus.ACTIVE:
        raise refusal()
    return endpoint


def _create_manual_delivery(event: Event, endpoint: Endpoint, now: datetime) -> Delivery:
    """The caller holds the lock of the endpoint, so that each delivery gets its own number."""
    earlier = Delivery.objects.filter(event=event, endpoint=endpoint).aggregate(last=Max("manual_number"))
    delivery = events.new_delivery(event.id, event.type, endpoint.id, now, **_requested(now))
    delivery.event, delivery.manual_number = event, (earlier["last"] or 0) + 1
    delivery.save(force_insert=True)
    wakeup.wake_on_commit()
    return delivery


def _missed(endpoint: Endpoint, since: datetime) -> list[tuple[str, str]]:
    """The ids and types of the events, the oldest first: one more than a replay sends, if there are more."""
    deliveries = Delivery.objects.filter(event=OuterRef("pk"), endpoint=endpoint)
    waiting = Q(manual_number=0, state=DeliveryState.PENDING)
    missed = Event.objects.filter(
        ~Exists(deliveries.filter(waiting | Q(state=DeliveryState.SUCCEEDED))),
        Exists(deliveries.filter(manual_number=0)) | Q(type__in=endpoint.events),
        merchant=endpoint.merchant_id,
        created_at__gte=since,
    )
    # An index has the events of each type in order, and ids sort by time.
    of_types = [missed.filter(type=each).order_by("created_at", "id") for each in EVENT_TYPES]
    found = [event for each in of_types for event in each.values_list("pk", "type")[: MAX_REPLAYED + 1]]
    return sorted(found)[: MAX_REPLAYED + 1]
