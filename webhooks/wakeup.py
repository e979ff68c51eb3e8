"""Wake the delivery workers. A lost wake-up costs one second, because beat also wakes them."""

from django.conf import settings
from django.db import transaction

from core.work.wakeup import WakeupSender

TASK = "webhooks.drain"
QUEUE = "webhooks"
_sender = WakeupSender(TASK, QUEUE, settings.BROKER)


def wake() -> None:
    """Wake a worker; safe to call from anywhere, any number of times."""
    _sender.wake()


def wake_on_commit() -> None:
    """Wake a worker after the current transaction commits; do nothing if it rolls back."""
    transaction.on_commit(wake, robust=True)
