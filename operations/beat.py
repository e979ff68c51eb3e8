"""Celery beat. A task that looks for due work is published each second only if there may be some.

An idle instance would otherwise spend most of its processor time on publishing and running tasks that find
nothing. A check may be wrong: each task also runs every ten seconds.
"""

import logging
import time
from collections import defaultdict
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from celery.beat import Scheduler as CeleryScheduler
from django.db import DatabaseError, close_old_connections

from audit_trail.models import UnchainedRecord
from core import clock
from operations import heartbeats
from payments.card_models import IS_OPEN
from payments.models import CardCharge, Payment, PaymentStatus
from reconciliation.inquiries import batches
from reconciliation.statements import import_jobs
from transfers.models import OPEN_STATES as OPEN_TRANSFER_STATES
from transfers.models import Transfer
from webhooks.models import UNFINISHED_STATES, Delivery

log = logging.getLogger("beat")
RECORD_EVERY = timedelta(seconds=5)
# The longest time between two runs of a task without work.
IDLE_INTERVAL = timedelta(seconds=10)


def _has_transfers(now: datetime) -> bool:
    return Transfer.objects.filter(state__in=OPEN_TRANSFER_STATES).exists()


def _has_deliveries(now: datetime) -> bool:
    """Each state has a partial index of its own, and a query for both would read the table."""
    return any(Delivery.objects.filter(state=state).exists() for state in UNFINISHED_STATES)


def _has_inquiries(now: datetime) -> bool:
    """Whether a payment may need its first inquiry, or a later inquiry is due."""
    is_pending = Payment.objects.filter(status=PaymentStatus.PENDING).exists()
    return is_pending or batches.available_banks(now).exists()


# By task: whether there may be work. The cost must not grow with history, because beat asks each second.
CHECKS: dict[str, Callable[[datetime], bool]] = {
    "webhooks.run_due": _has_deliveries,
    "refunds.run_due": _has_transfers,
    "reconciliation.run_returns": _has_transfers,
    "withdrawals.run_due": _has_transfers,
    "payments.inquire_due": lambda now: CardCharge.objects.filter(IS_OPEN).exists(),
    "reconciliation.inquire_due": _has_inquiries,
    "reconciliation.import_statements": lambda now: import_jobs.QUEUE.has_open(),
    "payments.expire_due": lambda now: Payment.objects.overdue(now).exists(),
    "audit_trail.chain_waiting": lambda now: UnchainedRecord.objects.exists(),
}


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
        for entry in entries:
            if self.due_at[entry.task] <= now:
                self.due_at[entry.task] = now + entry.schedule.run_every.total_seconds()
                if self._may_find_work(entry.task):
                    self.published_at[entry.task] = clock.now()
                    self.apply_entry(entry, producer=self.producer)
        return max(0.0, min(self.due_at.values()) - time.monotonic())

    def _may_find_work(self, task: str) -> bool:
        check, published_at, now = CHECKS.get(task), self.published_at.get(task), clock.now()
        if check is None or published_at is None or now - published_at >= IDLE_INTERVAL:
            return True
        try:
            return check(now)
        except DatabaseError as error:
            log.warning("beat could not check for due work: %s", type(error).__name__)
            return True

    def _record(self) -> None:
        now = clock.now()
        if now - self.recorded_at < RECORD_EVERY:
            return
        self.recorded_at = now
        try:
            close_old_connections()
            heartbeats.record(heartbeats.BEAT, now=now)
        except DatabaseError as error:
            log.warning("the heartbeat of beat was not written: %s", type(error).__name__)
