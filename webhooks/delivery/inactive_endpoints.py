"""Deliveries of inactive endpoints: held while the endpoint is disabled, failed once it is deleted."""

from datetime import datetime
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from webhooks.models import Delivery, DeliveryState, Endpoint, EndpointStatus

ENDPOINT_BATCH = 100
DELIVERY_BATCH = 5000


def hold_or_fail(endpoint: Endpoint, now: datetime) -> None:
    """The first of them, in the caller's transaction, which holds the endpoint's lock.

    Nobody waits for the end of a long backlog: `sweep` goes on with it.
    """
    if endpoint.deleted_at is not None:
        for state in (DeliveryState.PENDING, DeliveryState.HELD):
            _batch(endpoint, state=state).update(state=DeliveryState.FAILED, finished_at=now)
    elif endpoint.status == EndpointStatus.DISABLED:
        by_hand = _batch(endpoint, state=DeliveryState.PENDING, manual_number__gt=0)
        by_hand.update(state=DeliveryState.FAILED, finished_at=now)
        _batch(endpoint, state=DeliveryState.PENDING, manual_number=0).update(state=DeliveryState.HELD)


def sweep(*, now: datetime) -> None:
    """Settle what came in, or back from a worker, while its endpoint was disabled or deleted."""
    for endpoint_id in _with_open_deliveries()[:ENDPOINT_BATCH]:
        with transaction.atomic():
            hold_or_fail(Endpoint.objects.lock(endpoint_id), now)


def _with_open_deliveries() -> "QuerySet[Endpoint, str]":
    waiting = Delivery.objects.filter(endpoint=OuterRef("pk"), state=DeliveryState.PENDING)
    held = Delivery.objects.filter(endpoint=OuterRef("pk"), state=DeliveryState.HELD)
    left = Exists(waiting) | Q(deleted_at__isnull=False) & Exists(held)
    inactive: QuerySet[Endpoint, str] = Endpoint.objects.inactive().filter(left).values_list("pk", flat=True)
    return inactive


def _batch(endpoint: Endpoint, **conditions: Any) -> "QuerySet[Delivery]":
    some = Delivery.objects.filter(endpoint=endpoint, **conditions).order_by("due_at")[:DELIVERY_BATCH]
    # Judged again by the UPDATE: a worker may take one while it waits for its lock.
    return Delivery.objects.filter(pk__in=list(some.values_list("pk", flat=True)), **conditions)
