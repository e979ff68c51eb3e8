from celery import shared_task

from core import clock
from refunds.services import OWNER
from transfers import services as transfers


@shared_task(name="refunds.run_due")
def run_due() -> None:
    transfers.work("refund", OWNER, now=clock.now)
