from celery import shared_task

from core import clock
from idempotency import services


@shared_task(name="idempotency.forget_expired")
def forget_expired() -> None:
    services.forget_expired(now=clock.now())
