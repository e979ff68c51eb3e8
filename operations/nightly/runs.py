"""Run the nightly jobs at their hours in Bangkok, each once a day and one at a time, and keep the results.

Beat asks every minute. A job whose hour passed while nothing ran is run later on the same day. A row is the
run: its worker leases it, so a second beat or worker changes nothing. If a worker is killed, the lease ends
at the deadline of the job, and the job runs again.
"""

import logging
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from datetime import datetime, timedelta

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection, transaction

from core import clock
from core.database import rows
from core.database.archiver import Archiver, base_backup_age_seconds
from core.database.cut import connection_cut_at
from core.deadlines import Deadline
from operations.models import JobRun, NightlyJob
from operations.nightly import jobs
from webhooks import events
from webhooks.models import Event, StaffEventType

log = logging.getLogger("nightly")
# The connection of a job is cut after this.
DEADLINE = timedelta(hours=2)
MAX_ATTEMPTS = 3
# As the alerts ArchiveLate and BackupLate.
ARCHIVE_LATE_AFTER = timedelta(minutes=15)
BACKUP_LATE_AFTER = timedelta(hours=26)
_LOCK = "SELECT pg_advisory_xact_lock(hashtextextended('nightly jobs', 0))"
_CLAIM = """
INSERT INTO operations_jobrun AS t (job, day, attempts, started_at, lease_until, error)
SELECT %(job)s, %(day)s, 1, %(now)s, clock_timestamp() + %(deadline)s, ''
WHERE NOT EXISTS (SELECT FROM operations_jobrun WHERE lease_until > clock_timestamp())
ON CONFLICT (job, day) DO UPDATE
    SET attempts = t.attempts + 1, started_at = EXCLUDED.started_at, lease_until = EXCLUDED.lease_until
    WHERE t.ended_at IS NULL AND t.attempts < %(max_attempts)s
RETURNING id
"""


def tell_of_late_backups(now: datetime) -> None:
    """Tell staff once a day that PostgreSQL archives no WAL, and that its newest base backup is too old."""
    archiver = Archiver.read()
    if archiver.is_on:
        _tell_if_late("archive", archiver.age_seconds, ARCHIVE_LATE_AFTER, "no WAL archived", now)
        age = base_backup_age_seconds()
        _tell_if_late("base_backup", age or 0.0, BACKUP_LATE_AFTER, "no base backup", now)


def _tell_if_late(subject: str, seconds: float, limit: timedelta, found: str, now: datetime) -> None:
    age = timedelta(seconds=seconds)
    told = Event.objects.filter(merchant=None, type=StaffEventType.BACKUP_LATE, subject_id=subject)
    if age >= limit and not told.filter(created_at__gt=now - timedelta(days=1)).exists():
        detail = f"{found} for {clock.format_duration(age)}"
        events.tell_staff(StaffEventType.BACKUP_LATE, subject, now, detail=detail)


def run_due() -> None:
    """Run the jobs that are due today, in the order of their hours."""
    for job in NightlyJob:
        due_at, now = settings.NIGHTLY_JOBS.get(job.value), clock.now()
        if due_at is None or now.astimezone(clock.BANGKOK).time() < due_at:
            continue
        if jobs.is_enabled(job):
            _run_claimed(job, now)


def _run_claimed(job: NightlyJob, now: datetime) -> None:
    claimed = _claim(job, now)
    if claimed is None:
        return
    try:
        with connection_cut_at(Deadline.after(DEADLINE.total_seconds())), recorded(claimed):
            claimed.differences = jobs.run(job, now)
    # It must not stop the other jobs.
    except Exception:
        log.exception("%s failed", job.value)
    else:
        seconds = (clock.now() - now).total_seconds()
        log.info("%s ended after %.1f s: %d differences", job.value, seconds, claimed.differences)


@transaction.atomic
def _claim(job: NightlyJob, now: datetime) -> JobRun | None:
    """Lease the run of today, unless it has ended or another job runs."""
    day = now.astimezone(clock.BANGKOK).date()
    if JobRun.objects.filter(job=job, day=day, ended_at__isnull=False).exists():
        return None
    rows.run(_LOCK, [])
    values = {"job": job.value, "day": day, "now": now, "deadline": DEADLINE, "max_attempts": MAX_ATTEMPTS}
    found = rows.run(_CLAIM, values).fetchone()
    return None if found is None else JobRun.objects.get(pk=found[0])


def by_command(job: NightlyJob) -> AbstractContextManager[JobRun]:
    """Record the run of a command as well, so that metrics show it. The block sets `differences`."""
    return recorded(JobRun.objects.create(job=job, started_at=clock.now()))


@contextmanager
def recorded(run: JobRun) -> Iterator[JobRun]:
    """Record how the block ended."""
    began, error = time.monotonic(), ""
    try:
        yield run
    except BaseException as problem:
        error = type(problem).__name__
        raise
    finally:
        # The job may have lost its connection.
        connection.close_if_unusable_or_obsolete()
        try:
            with transaction.atomic():
                JobRun.objects.filter(pk=run.pk).update(
                    lease_until=None,
                    ended_at=(now := clock.now()),
                    seconds=time.monotonic() - began,
                    differences=run.differences,
                    error=error[:60],
                )
                if found := error or (run.differences and f"{run.differences:,} differences"):
                    detail = f"{run.job}: {found}"
                    events.tell_staff(StaffEventType.JOB_FAILED, str(run.pk), now, detail=detail)
        except (DatabaseError, InterfaceError) as problem:
            log.error("The end of %s was not recorded: %s", run.job, type(problem).__name__)
