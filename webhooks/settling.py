"""Deliveries of endpoints that are told nothing: held while one is disabled, ended once it is deleted."""

from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from webhooks.models import Delivery, DeliveryState, Endpoint, EndpointStatus

ENDPOINTS_AT_ONCE = 100
DELIVERIES_AT_ONCE = 5000


def settle(endpoint: Endpoint, now: datetime) -> None:
    """The first of them, in the caller's transaction, which holds the endpoint's lock.

    Nobody waits for the end of a long backlog: `settle_left` goes on with it.
    """
    if endpoint.deleted_at is not None:
        for state in (DeliveryState.PENDING, DeliveryState.HELD):
            _first(endpoint, state=state).update(state=DeliveryState.FAILED, finished_at=now)
    elif endpoint.status == EndpointStatus.DISABLED:
        by_hand = _first(endpoint, state=DeliveryState.PENDING, resend__gt=0)
        by_hand.update(state=DeliveryState.FAILED, finished_at=now)
        _first(endpoint, state=DeliveryState.PENDING, resend=0).update(state=DeliveryState.HELD)


def settle_left(*, now: datetime) -> None:
    """Settle what came in, or back from a worker, while its endpoint was disabled or deleted."""
    for endpoint_id in _with_something_left()[:ENDPOINTS_AT_ONCE]:
        with transaction.atomic():
            settle(Endpoint.objects.locked(endpoint_id), now)


def _with_something_left() -> "QuerySet[Endpoint, str]":
    waiting = Delivery.objects.filter(endpoint=OuterRef("pk"), state=DeliveryState.PENDING)
    held = Delivery.objects.filter(endpoint=OuterRef("pk"), state=DeliveryState.HELD)
    left = Exists(waiting) | Q(deleted_at__isnull=False) & Exists(held)
    silent: QuerySet[Endpoint, str] = Endpoint.objects.silent().filter(left).values_list("pk", flat=True)
    return silent


def _first(endpoint: Endpoint, **which: Any) -> "QuerySet[Delivery]":
    some = Delivery.objects.filter(endpoint=endpoint, **which).order_by("due_at")[:DELIVERIES_AT_ONCE]
    # Judged again by the UPDATE: a worker may take one while it waits for its lock.
    return Delivery.objects.filter(pk__in=list(some.values_list("pk", flat=True)), **which)
