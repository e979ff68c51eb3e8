from celery import shared_task

from core import clock
from settlements import services


@shared_task(name="settlements.read")
def read() -> None:
    services.read_all(now=clock.now())
