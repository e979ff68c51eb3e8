from celery import shared_task

from core import clock
from payments import services


@shared_task(name="payments.expire_due")
def expire_due() -> None:
    services.expire_due(now=clock.now())
