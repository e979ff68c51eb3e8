from celery import shared_task

from core import clock
from idempotency import services


@shared_task(name="idempotency.delete_expired")
def delete_expired() -> None:
    services.delete_expired(now=clock.now())
