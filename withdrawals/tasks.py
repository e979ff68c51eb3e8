from celery import shared_task

from core import clock
from transfers import services as transfers
from withdrawals.services import OWNER


@shared_task(name="withdrawals.run_due")
def run_due() -> None:
    transfers.work("withdrawal", OWNER, now=clock.now)
