from celery import shared_task

from core import clock
from webhooks.delivery import attempt_log, dispatcher, inactive_endpoints, queue


@shared_task(name="webhooks.drain")
def drain() -> None:
    dispatcher.drain()


@shared_task(name="webhooks.run_due")
def run_due() -> None:
    """Deliver, reclaim expired leases, hold deliveries of inactive endpoints. Runs every second."""
    # First, because a worker that could not reach the database for long may still hold answers.
    dispatcher.drain()
    if queue.reclaim_expired(now=clock.now()):
        dispatcher.drain()
    inactive_endpoints.sweep(now=clock.now())


@shared_task(name="webhooks.delete_old_attempts")
def delete_old_attempts() -> None:
    attempt_log.delete_old_attempts(now=clock.now())
