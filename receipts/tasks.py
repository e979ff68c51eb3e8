from celery import shared_task

from core import clock
from receipts import inquiries, services, settling


@shared_task(name="receipts.apply_left")
def apply_left() -> None:
    services.apply_left(now=clock.now())


@shared_task(name="receipts.inquire_due")
def inquire_due() -> None:
    inquiries.inquire_due(now=clock.now)


@shared_task(name="receipts.run_returns")
def run_returns() -> None:
    settling.run_due(now=clock.now)
