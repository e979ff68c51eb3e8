from celery import shared_task

from core import clock
from transfers import services as transfers
from withdrawals import payouts
from withdrawals.services import TRANSFER_HANDLER


@shared_task(name="withdrawals.run_due")
def run_due() -> None:
    transfers.run_due("withdrawal", TRANSFER_HANDLER, now=clock.now)


@shared_task(name="withdrawals.pay_nightly")
def pay_nightly() -> None:
    payouts.run_due(now=clock.now)
