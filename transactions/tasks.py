from celery import shared_task

from core import clock
from transactions import ledger


@shared_task(name="transactions.fold_due")
def fold_due() -> None:
    ledger.fold_due(now=clock.now())
