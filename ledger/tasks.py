from celery import shared_task

from core import clock
from ledger import services


@shared_task(name="ledger.roll_up_due")
def roll_up_due() -> None:
    services.roll_up_due(now=clock.now())
