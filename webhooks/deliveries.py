"""Tell endpoints: take what is due, post it outside any transaction, note what came back."""

import time
from collections.abc import Callable
from datetime import datetime, timedelta

from django.conf import settings
from django.db import transaction

from core import clock
from webhooks import client, doorbell, endpoints, leases, posting, schedule
from webhooks.leases import Lease
from webhooks.models import Attempt, Delivery, DeliveryState, Trigger

CONNECT_SECONDS = 3.0
GONE = 410
# Then another task goes on: a worker that is to stop can, and beat's task gets its turn.
DRAIN_SECONDS = 5.0


def drain(*, now: Callable[[], datetime] = clock.now) -> int:
    """Deliver until nothing is found or five seconds have passed; returns the number of attempts.

    Any number of drains run side by side.
    """
    until, posted = time.monotonic() + DRAIN_SECONDS, 0
    while claimed := leases.claim(now=now()):
        if posted == 0:
            # There may be more: let another thread look while this one waits for an answer.
            doorbell.ring()
        for lease in claimed:
            deliver(lease, now=now)
        posted += len(claimed)
        if time.monotonic() >= until:
            doorbell.ring()
            break
    return posted


def deliver(lease: Lease, *, now: Callable[[], datetime] = clock.now) -> None:
    """One attempt: post, then note."""
    started_at = now()
    answer = posting.post(
        lease.endpoint,
        message_id=lease.event_id,
        body=lease.body,
        merchant_mode=lease.merchant_mode,
        now=started_at,
        timeouts=client.Timeouts(connect=CONNECT_SECONDS, total=settings.WEBHOOK_SECONDS),
    )
    note(lease, answer, started_at=started_at, now=now())


@transaction.atomic
def note(lease: Lease, answer: client.Answer, *, started_at: datetime, now: datetime) -> bool:
    """Write down what came back. False when the lease was lost meanwhile: then only the attempt is kept."""
    if answer.status == GONE:
        # The endpoint before its deliveries: everybody locks in this order.
        endpoints.disable(endpoint_id=lease.endpoint.id, reason="gone", now=now)
    held = Delivery.objects.filter(pk=lease.delivery_id, state=DeliveryState.LEASED, lease_id=lease.lease_id)
    changed = held.update(lease_id=None, lease_until=None, **_next(lease, answer, now))
    Attempt.objects.create(
        delivery_id=lease.delivery_id,
        number=lease.attempt,
        trigger=lease.trigger,
        started_at=started_at,
        duration_ms=answer.duration_ms,
        status=answer.status,
        error=answer.error,
        peer=answer.peer or "",
        excerpt=answer.excerpt,
    )
    return changed == 1


def _next(lease: Lease, answer: client.Answer, now: datetime) -> dict[str, object]:
    """What becomes of the delivery."""
    if answer.error == "":
        return {"state": DeliveryState.SUCCEEDED, "finished_at": now}
    if lease.trigger == Trigger.MANUAL:
        return {"state": DeliveryState.FAILED, "finished_at": now}
    if answer.status == GONE:
        return {"state": DeliveryState.HELD}
    wait = schedule.wait_after(
        lease.attempt, pace=settings.WEBHOOK_PACE, retry_after=answer.retry_after, now=now
    )
    if wait is None or answer.error == "blocked":
        return {"state": DeliveryState.FAILED, "finished_at": now}
    return {"state": DeliveryState.PENDING, "due_at": now + timedelta(seconds=wait)}
