"""Celery beat. A task that looks for due work is published each second only if there may be some.

An idle instance would otherwise spend most of its processor time on publishing and running tasks that find
nothing. A check may be wrong: each task also runs every 30 seconds.
"""

import logging
import time
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from typing import Any

from celery.beat import Scheduler as CeleryScheduler
from django.db import DatabaseError, close_old_connections
from django.db.models import QuerySet

from audit_trail.models import UnchainedRecord
from core import clock
from core.database import rows
from counts.models import CountDelta
from ledger.models import PendingEntry
from operations.nightly import heartbeats
from payments.card_models import IS_OPEN
from payments.models import CardCharge, Payment, PaymentStatus
from reconciliation.inquiries import batches
from reconciliation.models import BankTransaction
from reconciliation.statements import import_jobs
from transfers import safe_mode
from transfers.models import OPEN_STATES as OPEN_TRANSFER_STATES
from transfers.models import Transfer
from webhooks.models import UNFINISHED_STATES, Delivery, UnnumberedEvent

log = logging.getLogger("beat")
RECORD_EVERY = timedelta(seconds=5)
# The longest time between two runs of a task without work.
IDLE_INTERVAL = timedelta(seconds=30)
# Stands for the present in the compiled statement.
PRESENT = datetime(2000, 1, 1, tzinfo=UTC)
Rows = QuerySet[Any]


def _open_transfers(now: datetime) -> list[Rows]:
    return [Transfer.objects.filter(state__in=OPEN_TRANSFER_STATES)]


# By task: rows that exist if there may be work. Their cost must not grow with history, because beat asks each
# second.
CHECKS: dict[str, Callable[[datetime], list[Rows]]] = {
    # Each state has a partial index of its own, and a query for both would read the table.
    "webhooks.run_due": lambda now: [Delivery.objects.filter(state=state) for state in UNFINISHED_STATES],
    "refunds.run_due": _open_transfers,
    "reconciliation.run_returns": _open_transfers,
    "withdrawals.run_due": _open_transfers,
    "payments.inquire_due": lambda now: [CardCharge.objects.filter(IS_OPEN)],
    # A payment may need its first inquiry, or a later inquiry is due.
    "reconciliation.inquire_due": lambda now: [
        Payment.objects.filter(status=PaymentStatus.PENDING),
        batches.available_banks(now),
    ],
    "reconciliation.import_statements": lambda now: [
        import_jobs.QUEUE.open_jobs(),
        import_jobs.old_uploads(now),
    ],
    "reconciliation.apply_unapplied": lambda now: [BankTransaction.objects.not_matched()],
    "payments.expire_due": lambda now: [Payment.objects.overdue(now)],
    "webhooks.number_events": lambda now: [UnnumberedEvent.objects.all()],
    "audit_trail.chain_waiting": lambda now: [UnchainedRecord.objects.all()],
    "ledger.roll_up_due": lambda now: [PendingEntry.objects.all()],
    "counts.roll_up": lambda now: [CountDelta.objects.all()],
}


@lru_cache(maxsize=1)
def statement() -> tuple[str, list[Any]]:
    """The statement that answers all checks in their order, and its values at the instant PRESENT.

    Django takes a millisecond to write the SQL of a check, so this is done once.
    """
    conditions, values = [], []
    for check in CHECKS.values():
        compiled = [each.query.exists().sql_with_params() for each in check(PRESENT)]
        conditions.append(" OR ".join(f"EXISTS ({sql})" for sql, _ in compiled))
        values += [value for _, of_one in compiled for value in of_one]
    return f"SELECT {', '.join(conditions)}", values


def tasks_with_work(now: datetime) -> set[str]:
    """The checked tasks that may find work, by one statement."""
    sql, values = statement()
    at_present = [now + (each - PRESENT) if isinstance(each, datetime) else each for each in values]
    found = rows.run(sql, at_present).fetchone()
    return {task for task, has_work in zip(CHECKS, found, strict=True) if has_work}


class Scheduler(CeleryScheduler):
    """Publishes each task at its interval, unless it would find nothing. At the start it publishes all.

    Celery's own `tick` computes dates and time zones for each task, which takes four times as long.
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self.recorded_at = clock.now() - RECORD_EVERY
        self.published_at: dict[str, datetime] = {}
        self.due_at: defaultdict[str, float] = defaultdict(float)  # by the monotonic clock
        super().__init__(*args, **kwargs)

    def tick(self, *args: Any, **kwargs: Any) -> float:
        """Publish what is due. Returns the seconds until the next task is due."""
        self._record()
        now = time.monotonic()
        entries: Any = self.schedule.values()  # celery-types lets task and schedule be None
        due = [entry for entry in entries if self.due_at[entry.task] <= now]
        with_work = self._tasks_with_work() if due else set()
        for entry in due:
            self.due_at[entry.task] = now + entry.schedule.run_every.total_seconds()
            published_at = self.published_at.get(entry.task)
            is_idle_for_long = published_at is None or clock.now() - published_at >= IDLE_INTERVAL
            if entry.task in with_work or is_idle_for_long:
                self.published_at[entry.task] = clock.now()
                self.apply_entry(entry, producer=self.producer)
        return max(0.0, min(self.due_at.values()) - time.monotonic())

    def _tasks_with_work(self) -> set[str]:
        """All tasks, if the database does not answer."""
        unchecked = {str(entry.task) for entry in self.schedule.values()} - CHECKS.keys()
        try:
            return unchecked | tasks_with_work(clock.now())
        except DatabaseError as error:
            log.warning("beat could not check for due work: %s", type(error).__name__)
            return unchecked | CHECKS.keys()

    def _record(self) -> None:
        now = clock.now()
        if now - self.recorded_at < RECORD_EVERY:
            return
        self.recorded_at = now
        try:
            close_old_connections()
            heartbeats.record(heartbeats.BEAT, now=now)
            safe_mode.check(now=now)
        except DatabaseError as error:
            log.warning("the heartbeat of beat was not written: %s", type(error).__name__)
