from celery import shared_task

from core import clock
from reconciliation.inquiries import services as inquiries, standby
from reconciliation.matching import order_completion, services as matching
from reconciliation.statements import import_jobs


@shared_task(name="reconciliation.apply_unapplied")
def apply_unapplied() -> None:
    matching.apply_unapplied(now=clock.now())


@shared_task(name="reconciliation.inquire_due")
def inquire_due() -> None:
    inquiries.inquire_due(now=clock.now)


@shared_task(name="reconciliation.return_codes")
def return_codes() -> None:
    standby.return_codes(now=clock.now)


@shared_task(name="reconciliation.run_returns")
def run_returns() -> None:
    order_completion.run_due_returns(now=clock.now)


@shared_task(name="reconciliation.import_statements")
def import_statements() -> None:
    import_jobs.run_due()
