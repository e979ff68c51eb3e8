from celery import shared_task

from console import heartbeats
from core import clock


@shared_task(name="console.beat_default")
def beat_default() -> None:
    heartbeats.sign("default", now=clock.now())


@shared_task(name="console.beat_webhooks")
def beat_webhooks() -> None:
    heartbeats.sign("webhooks", now=clock.now())


@shared_task(name="console.beat_banks")
def beat_banks() -> None:
    heartbeats.sign("banks", now=clock.now())
