"""Long work that staff ask for and a worker does: few jobs of a kind at a time, the oldest first.

A row is the job. A worker leases it, and renews the lease with each piece of work. If it is killed, the lease
ends and a worker takes the job again. The number of attempts fences out a worker whose lease has ended.
"""

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import models, transaction
from django.db.models import F, QuerySet
from django.db.models.functions import Now
from django.utils.translation import gettext_lazy as _

from core import clock
from core.database import rows
from core.database.columns import KeyedRow
from core.work import due_work

LEASE = timedelta(seconds=90)
LOCK_QUEUE = "SELECT pg_advisory_xact_lock(hashtextextended('jobs ' || %s, 0))"


class JobState(models.TextChoices):
    WAITING = "waiting", _("Waiting")
    RUNNING = "running", _("Running")
    DONE = "done", _("Done")
    FAILED = "failed", _("Failed")


OPEN_STATES = (JobState.WAITING, JobState.RUNNING)


class Abandoned(Exception):
    """Another worker has the job, because our lease has ended."""


class BackgroundJob(KeyedRow):
    """The columns of a job. `lease_until` and `attempts` belong to the worker."""

    state = models.CharField(max_length=7, choices=JobState.choices, default=JobState.WAITING)
    attempts = models.IntegerField(default=0)
    lease_until = models.DateTimeField(null=True)
    created_at = models.DateTimeField()
    finished_at = models.DateTimeField(null=True, db_index=True)

    class Meta:
        abstract = True

    @property
    def is_open(self) -> bool:
        return self.state in OPEN_STATES


@dataclass(frozen=True, slots=True)
class JobQueue:
    """The jobs of one kind. A job that killed its workers `max_attempts` times fails."""

    model: type[BackgroundJob]
    max_attempts: int = 3
    max_running: int = 1

    def open_jobs(self) -> QuerySet[Any]:
        return self.model._default_manager.filter(state__in=OPEN_STATES)

    @transaction.atomic
    def claim(self, **columns: Any) -> Any:
        """Lease the oldest job that no worker has, or return None. `columns` begin anew with each attempt."""
        opened = self.open_jobs()
        if not opened.exists():
            return None
        rows.run(LOCK_QUEUE, [self.model._meta.label_lower])
        if opened.filter(lease_until__gt=Now()).count() >= self.max_running:
            return None
        due = opened.filter(due_work.UNLEASED).order_by("created_at", "pk")
        ended = {"state": JobState.FAILED, "finished_at": clock.now(), "lease_until": None}
        due.filter(attempts__gte=self.max_attempts).update(**ended)
        lease: Any = {"state": JobState.RUNNING, "attempts": F("attempts") + 1, "lease_until": Now() + LEASE}
        found = due_work.claim(due, 1, **lease, **columns)
        return self.model._default_manager.get(pk=found[0].pk) if found else None

    def renew(self, job: BackgroundJob, **columns: Any) -> None:
        """Keep the lease, and set columns such as the progress. Raises Abandoned.

        The row stays locked until the caller's transaction ends, so no other worker can take the job before.
        """
        if not self._mine(job).update(lease_until=Now() + LEASE, **columns):
            raise Abandoned

    def end(self, job: BackgroundJob, state: JobState, **columns: Any) -> None:
        """Raises Abandoned."""
        ended = {"state": state, "finished_at": clock.now(), "lease_until": None}
        if not self._mine(job).update(**ended, **columns):
            raise Abandoned

    def _mine(self, job: BackgroundJob) -> QuerySet[Any]:
        return self.model._default_manager.filter(pk=job.pk, state=JobState.RUNNING, attempts=job.attempts)
