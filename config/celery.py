"""The Celery app and its beat table. Every task may run twice at once without harm."""

import os
import sys
from typing import Any

from celery import Celery, signals
from django.conf import settings

from core import request_context

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

app = Celery("thai_qr_payments")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()

# name, task, seconds between two runs, queue, why
BEAT_SCHEDULE = [
    (
        "deliver webhooks",
        "webhooks.run_due",
        1.0,
        "webhooks",
        "a lost wakeup costs a second, not a notification",
    ),
    (
        "expire payments",
        "payments.expire_due",
        5.0,
        "default",
        "sends the event; reads check the time themselves",
    ),
    (
        "carry out refunds",
        "refunds.run_due",
        1.0,
        "transfers",
        "submits refunds to banks and asks for their status",
    ),
    (
        "carry out returns",
        "reconciliation.run_returns",
        1.0,
        "transfers",
        "sends back money that matched no payment",
    ),
    (
        "carry out withdrawals",
        "withdrawals.run_due",
        1.0,
        "transfers",
        "submits withdrawals to banks and asks for their status",
    ),
    (
        "inquire card payments",
        "payments.inquire_due",
        1.0,
        "cards",
        "asks acquirers about charges without a response",
    ),
    (
        "inquire payments",
        "reconciliation.inquire_due",
        1.0,
        "inquiries",
        "finds payments without a callback",
    ),
    (
        "apply bank transactions",
        "reconciliation.apply_left",
        5.0,
        "default",
        "applies notifications that a crash left unprocessed",
    ),
    (
        "roll up ledger",
        "ledger.roll_up_due",
        5.0,
        "default",
        "rolls up ledger entries; balances are exact without it",
    ),
    (
        "count history",
        "transactions.roll_up_counts",
        5.0,
        "default",
        "rolls up counts; totals are exact without it",
    ),
    *(
        (
            f"heartbeat {queue}",
            f"operations.heartbeat_{queue}",
            5.0,
            queue,
            "shows /readyz that this queue is served",
        )
        for queue in settings.QUEUES
    ),
    (
        "delete expired idempotency keys",
        "idempotency.delete_expired",
        600.0,
        "default",
        "frees space; expired keys are ignored anyway",
    ),
    (
        "delete old delivery attempts",
        "webhooks.delete_old_attempts",
        600.0,
        "default",  # not "webhooks": tidying up delays no notification
        "attempts are kept for WEBHOOK_ATTEMPT_RETENTION_DAYS",
    ),
]
app.conf.beat_schedule = {
    name: {"task": task, "schedule": every, "options": {"queue": queue, "expires": max(every, 1.0)}}
    for name, task, every, queue, _why in BEAT_SCHEDULE
}
app.conf.task_routes = {"webhooks.*": {"queue": "webhooks"}}
app.conf.beat_scheduler = "operations.heartbeats:HeartbeatScheduler"
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
def begin_task_context(task_id: str, task: Any, **kwargs: Any) -> None:
    """Threads and processes are used again: nothing of the task before holds."""
    request_context.begin(actor=f"task:{task.name}", request_id=task_id)


@signals.worker_shutting_down.connect
def stop_webhook_dispatcher(**kwargs: Any) -> None:
    """What is under way still ends and is written down."""
    from webhooks.delivery import dispatcher

    dispatcher.stop()
