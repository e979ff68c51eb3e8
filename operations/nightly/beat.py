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
from django.db.models import Model, QuerySet, Subquery, Value
from psycopg.sql import Literal

from audit_trail.models import UnchainedRecord
from core import clock
from core.database import rows
from counts.models import CountClock, CountDelta, OpenPeriod
from ledger.models import Journal
from operations.nightly import heartbeats
from payments.card_models import IS_INQUIRED
from payments.models import CardCharge, Payment
from reconciliation.inquiries import batches
from reconciliation.models import BankTransaction, ScanCursor
from reconciliation.statements import import_jobs
from transfers import safe_mode
from transfers.models import OPEN_STATES as OPEN_TRANSFER_STATES, Transfer
from webhooks.models import Delivery, DeliveryState, Event

log = logging.getLogger("beat")
RECORD_EVERY = timedelta(seconds=5)
# The longest time between two runs of a task without work.
IDLE_INTERVAL = timedelta(seconds=30)
# Stands for the present in the compiled statement.
PRESENT = datetime(2000, 1, 1, tzinfo=UTC)
# Of events and postings. Those that are committed later wait for the next run without work.
RECENT = timedelta(seconds=10)
Rows = QuerySet[Any]


def _open_transfers(now: datetime) -> list[Rows]:
    return [Transfer.objects.filter(state__in=OPEN_TRANSFER_STATES)]


def _newest(model: type[Model], since: datetime | Subquery) -> list[Rows]:
    """The newest row if it was created since then. These rows stay, so no entries of gone ones are read."""
    rows_of: QuerySet[Any] = model._default_manager.all()
    newest = Subquery(rows_of.order_by("-pk").values("pk")[:1])
    return [rows_of.filter(pk=newest, created_at__gte=since)]


# By task: rows that exist if there may be work. Their cost must not grow with history, because beat asks each
# second: nor with the rows that are gone from a queue, whose entries stay in its indexes until vacuum. So a
# queue that each payment fills and a task empties is asked by the table that its rows come from, or from
# where its newest rows are. Whatever is due stays asked by itself: a crash may leave it for longer.
CHECKS: dict[str, Callable[[datetime], list[Rows]]] = {
    "webhooks.run_due": lambda now: [Delivery.objects.filter(state=DeliveryState.PENDING)],
    "refunds.run_due": _open_transfers,
    "reconciliation.run_returns": _open_transfers,
    "withdrawals.run_due": _open_transfers,
    "payments.inquire_due": lambda now: [CardCharge.objects.filter(IS_INQUIRED)],
    # The scan has not read all payments again after their last possible commit, or an inquiry is due.
    "reconciliation.inquire_due": lambda now: [
        *_newest(Payment, Subquery(ScanCursor.objects.values("created_before")[:1])),
        batches.available_banks(now),
    ],
    "reconciliation.import_statements": lambda now: [
        import_jobs.QUEUE.open_jobs(),
        import_jobs.old_uploads(now),
    ],
    "reconciliation.apply_unapplied": lambda now: [
        BankTransaction.objects.not_matched().order_by("-received_at")
    ],
    "payments.expire_due": lambda now: [Payment.objects.overdue(now)],
    "webhooks.number_events": lambda now: _newest(Event, now - RECENT),
    "audit_trail.chain_waiting": lambda now: [UnchainedRecord.objects.order_by("-pk")],
    "ledger.roll_up_due": lambda now: _newest(Journal, now - RECENT),
    "counts.roll_up": lambda now: [
        OpenPeriod.objects.filter(period__gte=Subquery(CountClock.objects.values("closed")[:1])),
        CountDelta.objects.order_by("-pk"),
    ],
}


@lru_cache(maxsize=1)
def statement() -> tuple[str, list[datetime]]:
    """The statement that answers all checks in their order, and its instants at PRESENT.

    Django takes a millisecond to write the SQL of a check, so this is done once. Only instants are
    parameters. With one for a state, the plan that PostgreSQL keeps could not use the index of rows in that
    state, and would read all payments: 36 ms of 200,000. EXISTS would drop the order.
    """
    conditions, instants = [], []
    for check in CHECKS.values():
        found = []
        for rows_with_work in check(PRESENT):
            sql, values = rows_with_work.values(work=Value(True))[:1].query.sql_with_params()
            texts = ["%s" if isinstance(each, datetime) else Literal(each).as_string() for each in values]
            found.append(f"({sql % tuple(texts)})")
            instants += [each for each in values if isinstance(each, datetime)]
        conditions.append(" OR ".join(found))
    return f"SELECT {', '.join(conditions)}", instants


def tasks_with_work(now: datetime) -> set[str]:
    """The checked tasks that may find work, by one statement."""
    sql, instants = statement()
    found = rows.run(sql, [now + (each - PRESENT) for each in instants]).fetchone()
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
