from celery import shared_task

from console import heartbeats
from core import clock


@shared_task(name="console.beat_default")
def beat_default() -> None:
    heartbeats.sign("default", now=clock.now())


@shared_task(name="console.beat_webhooks")
def beat_webhooks() -> None:
    heartbeats.sign("webhooks", now=clock.now())


@shared_task(name="console.beat_cards")
def beat_cards() -> None:
    heartbeats.sign("cards", now=clock.now())


@shared_task(name="console.beat_transfers")
def beat_transfers() -> None:
    heartbeats.sign("transfers", now=clock.now())


@shared_task(name="console.beat_inquiries")
def beat_inquiries() -> None:
    heartbeats.sign("inquiries", now=clock.now())
