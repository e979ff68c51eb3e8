from celery import shared_task

from counts import counting


@shared_task(name="counts.roll_up")
def roll_up() -> None:
    counting.roll_up()
