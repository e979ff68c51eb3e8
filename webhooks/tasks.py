from celery import shared_task

from core import clock
from webhooks import endpoints, feed
from webhooks.delivery import dispatcher, queue


@shared_task(name="webhooks.drain")
def drain() -> None:
    dispatcher.drain()


@shared_task(name="webhooks.run_due")
def run_due() -> None:
    """Deliver, reclaim expired leases, hold deliveries of inactive endpoints. Runs every second."""
    # First, because after a database outage this worker may still have results to record.
    dispatcher.drain()
    if queue.reclaim_expired(now=clock.now()):
        dispatcher.drain()
    endpoints.sweep_inactive(now=clock.now())


@shared_task(name="webhooks.number_events")
def number_events() -> None:
    feed.number_all()
