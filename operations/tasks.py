"""Heartbeats of the workers: one task for each queue."""

from celery import shared_task
from django.conf import settings

from core import clock
from operations import heartbeats


def register_heartbeat(queue: str) -> None:
    @shared_task(name=heartbeats.TASK + queue)
    def heartbeat() -> None:
        heartbeats.record(queue, now=clock.now())


for queue in settings.QUEUES:
    register_heartbeat(queue)
