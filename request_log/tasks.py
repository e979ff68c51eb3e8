from celery import shared_task

from core import clock
from request_log import services


@shared_task(name="request_log.delete_old")
def delete_old() -> None:
    services.delete_old(now=clock.now())
