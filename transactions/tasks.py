from celery import shared_task

from transactions import counting


@shared_task(name="transactions.roll_up_counts")
def roll_up_counts() -> None:
    counting.roll_up()
