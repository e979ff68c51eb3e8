"""Heartbeats of the workers: one task for each queue. The nightly jobs."""

from celery import shared_task
from django.conf import settings

from core import clock
from operations.nightly import heartbeats, runs


def register_heartbeat(queue: str) -> None:
    @shared_task(name=heartbeats.TASK + queue)
    def heartbeat() -> None:
        heartbeats.record(queue, now=clock.now())


for queue in settings.QUEUES:
    register_heartbeat(queue)


@shared_task(name="operations.run_nightly")
def run_nightly() -> None:
    runs.tell_of_late_backups(clock.now())
    runs.run_due()
