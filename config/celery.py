"""The Celery app and its beat table. Every task may run twice at once without harm."""

import os
import sys
from typing import Any

from celery import Celery, signals
from django.conf import settings

from core import origin

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

app = Celery("thai_qr_payments")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()

# name, task, seconds between two runs, queue, why
BEAT = [
    ("ring webhooks", "webhooks.ring", 1.0, "webhooks", "a lost doorbell costs a second, not a notification"),
    (
        "expire payments",
        "payments.expire_due",
        5.0,
        "default",
        "reads are right without it; this sends the event",
    ),
    ("carry out refunds", "refunds.run_due", 1.0, "transfers", "money back: told to banks, inquired"),
    ("carry out returns", "receipts.run_returns", 1.0, "transfers", "money that did not fit goes back"),
    ("carry out withdrawals", "withdrawals.run_due", 1.0, "transfers", "money out: told to banks, inquired"),
    (
        "inquire card payments",
        "payments.inquire_due",
        1.0,
        "cards",
        "what an acquirer did not answer, or a crash left over",
    ),
    (
        "inquire payments",
        "receipts.inquire_due",
        1.0,
        "inquiries",
        "a lost callback becomes a late one, not a lost payment",
    ),
    ("apply receipts", "receipts.apply_left", 5.0, "default", "what a crash stored but did not apply"),
    (
        "fold ledger",
        "transactions.fold_due",
        5.0,
        "default",
        "balances are right without it; this keeps them quick",
    ),
    (
        "count history",
        "transactions.count_due",
        5.0,
        "default",
        "totals are right without it; this keeps them quick",
    ),
    *(
        (f"heartbeat {queue}", f"console.beat_{queue}", 5.0, queue, "readiness: this queue is being served")
        for queue in settings.QUEUES
    ),
    (
        "forget keys",
        "idempotency.forget_expired",
        600.0,
        "default",
        "keys are dead by the clock; this frees the space",
    ),
    (
        "forget attempts",
        "webhooks.forget_attempts",
        600.0,
        "default",  # not "webhooks": tidying up delays no notification
        "attempts are kept for WEBHOOK_ATTEMPT_DAYS",
    ),
]
app.conf.beat_schedule = {
    name: {"task": task, "schedule": every, "options": {"queue": queue, "expires": max(every, 1.0)}}
    for name, task, every, queue, _why in BEAT
}
app.conf.task_routes = {"webhooks.*": {"queue": "webhooks"}}
app.conf.beat_scheduler = "console.beat:Scheduler"
app.conf.beat_max_loop_interval = 1.0


@signals.worker_init.connect
@signals.beat_init.connect
def check_settings(**kwargs: Any) -> None:
    """Workers refuse wrong settings like the web server does."""
    from django.core.management.base import SystemCheckError

    from config.checks import refuse_wrong_settings

    try:
        refuse_wrong_settings()
    except SystemCheckError as error:
        sys.exit(str(error))  # Celery logs any other exception of a signal and goes on


@signals.task_prerun.connect
def say_what_runs(task_id: str, task: Any, **kwargs: Any) -> None:
    """Threads and processes are used again: nothing of the task before holds."""
    origin.begin(actor=f"task:{task.name}", request_id=task_id)


@signals.worker_shutting_down.connect
def begin_no_more_posts(**kwargs: Any) -> None:
    """What is under way still ends and is written down."""
    from webhooks import deliveries

    deliveries.stop()
