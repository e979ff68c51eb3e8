from celery import shared_task

from core import clock
from transactions import counting, ledger


@shared_task(name="transactions.fold_due")
def fold_due() -> None:
    ledger.fold_due(now=clock.now())


@shared_task(name="transactions.count_due")
def count_due() -> None:
    counting.fold()
