from celery import shared_task

from core import clock
from operations import heartbeats


@shared_task(name="operations.heartbeat_default")
def heartbeat_default() -> None:
    heartbeats.record("default", now=clock.now())


@shared_task(name="operations.heartbeat_webhooks")
def heartbeat_webhooks() -> None:
    heartbeats.record("webhooks", now=clock.now())


@shared_task(name="operations.heartbeat_cards")
def heartbeat_cards() -> None:
    heartbeats.record("cards", now=clock.now())


@shared_task(name="operations.heartbeat_transfers")
def heartbeat_transfers() -> None:
    heartbeats.record("transfers", now=clock.now())


@shared_task(name="operations.heartbeat_inquiries")
def heartbeat_inquiries() -> None:
    heartbeats.record("inquiries", now=clock.now())
