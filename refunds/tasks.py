from celery import shared_task

from core import clock
from refunds.completion import TRANSFER_HANDLER
from transfers import services as transfers


@shared_task(name="refunds.run_due")
def run_due() -> None:
    transfers.run_due("refund", TRANSFER_HANDLER, now=clock.now)
