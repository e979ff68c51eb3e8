from celery import shared_task

from console.exports import jobs
from core import clock


@shared_task(name="console.run_exports")
def run_exports() -> None:
    jobs.run_due()


@shared_task(name="console.delete_old_exports")
def delete_old_exports() -> None:
    jobs.delete_old(clock.now())
