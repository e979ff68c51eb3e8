"""The Celery app and its beat table. Every task may run twice at once without harm."""

import atexit
import os
import sys
import time
from typing import Any

from celery import Celery, signals
from django.conf import settings
from django.db import close_old_connections

from core import request_context
from core.observing import measurements

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")

app = Celery("thai_qr_payments")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()

# name, task, seconds between two runs, queue
BEAT_SCHEDULE = [
    # A lost wake-up delays webhooks by a second at most.
    ("deliver webhooks", "webhooks.run_due", 1.0, "webhooks"),
    # Sends the events; reads check the expiry themselves.
    ("expire payments", "payments.expire_due", 5.0, "default"),
    ("carry out refunds", "refunds.run_due", 1.0, "transfers"),
    ("carry out returns", "reconciliation.run_returns", 1.0, "transfers"),
    ("carry out withdrawals", "withdrawals.run_due", 1.0, "transfers"),
    ("inquire card payments", "payments.inquire_due", 1.0, "cards"),
    ("read settlements", "settlements.read", 600.0, "cards"),
    # A bank may be asked a second after its last answer: runs at that pace would come just too early.
    ("inquire payments", "reconciliation.inquire_due", 0.5, "inquiries"),
    # To the first banks of merchants whose new codes go to the stand-by.
    ("return codes to banks", "reconciliation.return_codes", 15.0, "inquiries"),
    # Applies what a crash left unprocessed.
    ("apply bank transactions", "reconciliation.apply_unapplied", 5.0, "default"),
    # Balances and totals are exact without these two, but slower.
    ("roll up ledger", "ledger.roll_up_due", 5.0, "default"),
    ("roll up counts", "counts.roll_up", 5.0, "default"),
    # Who reads the feed numbers the events of its merchant. This is for the others.
    ("number events", "webhooks.number_events", 5.0, "default"),
    # Pages never wait for the chain.
    ("chain audit records", "audit_trail.chain_waiting", 2.0, "default"),
    # Shows /readyz that each queue is served.
    *((f"heartbeat {queue}", f"operations.heartbeat_{queue}", 10.0, queue) for queue in settings.QUEUES),
    # Each at its hour in Bangkok.
    ("run nightly jobs", "operations.run_nightly", 60.0, "default"),
    ("make nightly payouts", "withdrawals.pay_nightly", 60.0, "default"),
    ("update usual amounts", "payments.update_usual_amounts", 3600.0, "default"),
    ("import statements", "reconciliation.import_statements", 1.0, "default"),
    ("write exports", "console.run_exports", 15.0, "default"),
    ("delete old exports", "console.delete_old_exports", 3600.0, "default"),
    ("delete expired idempotency keys", "idempotency.delete_expired", 600.0, "default"),
]
app.conf.beat_schedule = {
    name: {"task": task, "schedule": every, "options": {"queue": queue, "expires": max(every, 1.0)}}
    for name, task, every, queue in BEAT_SCHEDULE
}
# By default Celery connects to the database for each task, which takes 10 ms of processor time. Threads keep
# their connections; `begin_task` checks them.
app.conf["CELERY_DB_REUSE_MAX"] = sys.maxsize
app.conf.task_routes = {"webhooks.*": {"queue": "webhooks"}}
app.conf.beat_scheduler = "operations.nightly.beat:Scheduler"
app.conf.beat_max_loop_interval = 1.0


@signals.worker_init.connect
def start_worker(sender: Any, **kwargs: Any) -> None:
    """Report under the name that the option `-n` gave. Work goes on without the broker and without beat."""
    from config import checks, observation
    from config.silent_queues import SilentQueues

    checks.refuse_wrong_settings()
    observation.begin(sender.hostname.partition("@")[0])
    watch = SilentQueues(app)
    watch.start()
    signals.worker_shutting_down.connect(lambda **kwargs: watch.stop(), weak=False)


@signals.beat_init.connect
def start_beat(**kwargs: Any) -> None:
    from config import checks, observation

    checks.refuse_wrong_settings()
    observation.begin("beat")
    atexit.register(observation.end)


@signals.worker_shutdown.connect
def end_observation(**kwargs: Any) -> None:
    from config import observation

    observation.end()


@signals.task_prerun.connect
def begin_task(task_id: str, task: Any, **kwargs: Any) -> None:
    """Replace the context of the task before, and close a connection that is broken or too old."""
    task.request.began = time.perf_counter()
    request_context.begin(actor=f"task:{task.name}", request_id=task_id)
    if not task.request.is_eager:  # a task that its caller runs may be in the caller's transaction
        close_old_connections()


@signals.task_postrun.connect
def measure_task(task: Any, state: str, **kwargs: Any) -> None:
    seconds = time.perf_counter() - task.request.began
    measurements.OF_PROCESS.add(measurements.TASK, (task.name, state.lower()), seconds)


@signals.worker_shutting_down.connect
def stop_webhook_dispatcher(**kwargs: Any) -> None:
    """Deliveries under way still end and are recorded."""
    from webhooks.delivery import dispatcher

    dispatcher.stop()
