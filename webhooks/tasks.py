from celery import shared_task

from core import clock
from webhooks import deliveries, leases, retention, settling


@shared_task(name="webhooks.drain")
def drain() -> None:
    deliveries.drain()


@shared_task(name="webhooks.ring")
def ring() -> None:
    """Beat's bell: also for what a dead worker or a silent endpoint left over."""
    # First, because a worker that could not reach the database for long may still hold answers.
    deliveries.drain()
    if leases.reclaim(now=clock.now()):
        deliveries.drain()
    settling.settle_left(now=clock.now())


@shared_task(name="webhooks.forget_attempts")
def forget_attempts() -> None:
    retention.forget_attempts(now=clock.now())
