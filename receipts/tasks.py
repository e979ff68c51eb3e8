from celery import shared_task

from core import clock
from receipts import services


@shared_task(name="receipts.apply_left")
def apply_left() -> None:
    services.apply_left(now=clock.now())
