from celery import shared_task

from core import clock
from payments import card_inquiries, expiry_sweep, usual_amounts


@shared_task(name="payments.expire_due")
def expire_due() -> None:
    expiry_sweep.expire_due(now=clock.now())


@shared_task(name="payments.inquire_due")
def inquire_due() -> None:
    card_inquiries.inquire_due(now=clock.now)


@shared_task(name="payments.update_usual_amounts")
def update_usual_amounts() -> None:
    usual_amounts.update(now=clock.now())
