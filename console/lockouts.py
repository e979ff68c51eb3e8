"""Count failed logins per subject, and lock out a subject after too many.

The counts are in PostgreSQL: a lockout must work while Redis is down, and staff must see and lift it. The
hashing slot limits the writes to about two a second and process.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import F
from django.db.models.functions import Greatest

from audit_trail.acts import Act
from audit_trail.recording import recorded
from console.models import LoginThrottle
from core import rows, security_log
from core.security_log import SecurityEvent

LOCKOUT_PERIOD = timedelta(minutes=15)
# Expired rows that each new failure deletes.
CLEANUP_BATCH = 20
_COUNT_SQL = """
    WITH ended AS (
        DELETE FROM console_loginthrottle WHERE subject IN (
            SELECT subject FROM console_loginthrottle
            WHERE expires_at <= %(now)s AND subject <> ALL(%(names)s)
            ORDER BY expires_at LIMIT %(removed)s FOR UPDATE SKIP LOCKED
        )
    )
    INSERT INTO console_loginthrottle AS known (subject, failure_count, expires_at)
    SELECT name, 1, %(expires_at)s FROM unnest(%(names)s::text[]) AS name
    ON CONFLICT (subject) DO UPDATE SET
        failure_count = CASE WHEN known.expires_at <= %(now)s THEN 1 ELSE known.failure_count + 1 END,
        expires_at = EXCLUDED.expires_at
    RETURNING subject, failure_count
"""


@dataclass(frozen=True, slots=True)
class LoginSubject:
    """An address, user, name or device, and the failures after which it is locked out."""

    name: str
    limit: int


class LockedOutError(Exception):
    """A subject is locked out."""

    def __init__(self, retry_after: int) -> None:
        self.retry_after = retry_after
        super().__init__(f"locked out for {retry_after} seconds")


def check_not_locked_out(subjects: Sequence[LoginSubject], *, now: datetime) -> None:
    """Raises LockedOutError. Attempts during a lockout are not counted, so they do not prolong it."""
    limits = {subject.name: subject.limit for subject in subjects}
    known = LoginThrottle.objects.filter(subject__in=limits, expires_at__gt=now)
    ends = [row.expires_at for row in known if row.failure_count >= limits[row.subject]]
    if ends:
        raise LockedOutError(max(1, round((max(ends) - now).total_seconds())))


def count_attempt(subjects: Sequence[LoginSubject], *, now: datetime) -> set[LoginSubject]:
    """Count a failure for each subject before the password is checked; return those that reach their limit.

    Raises LockedOutError above a limit.
    """
    # Sorted, so that two processes cannot deadlock.
    limits = {subject.name: subject.limit for subject in sorted(subjects, key=lambda each: each.name)}
    counted = dict(
        rows.run(
            _COUNT_SQL,
            {"now": now, "expires_at": now + LOCKOUT_PERIOD, "names": list(limits), "removed": CLEANUP_BATCH},
        ).fetchall()
    )
    if any(failures > limits[name] for name, failures in counted.items()):
        raise LockedOutError(int(LOCKOUT_PERIOD.total_seconds()))
    return {subject for subject in subjects if counted[subject.name] == subject.limit}


def log_lockouts(locked_out: Iterable[LoginSubject]) -> None:
    """Write each lockout to the security log."""
    for subject in locked_out:
        security_log.record(SecurityEvent.LOCKOUT, subject=subject.name)


def reset_after_login(subjects: Sequence[LoginSubject]) -> None:
    """After a login, delete the failures of the user, and subtract this attempt from the address.

    The address keeps its other failures: a valid account must not hide guesses at others.
    """
    names = [subject.name for subject in subjects]
    is_address = {"subject__startswith": "address:"}
    known = LoginThrottle.objects.filter(subject__in=names)
    known.exclude(**is_address).delete()
    known.filter(**is_address).update(failure_count=Greatest(F("failure_count") - 1, 0))


def lift(subject: str) -> bool:
    """End the lockout of a subject, such as `user:somsri`. False if no failures are counted for it."""
    counted = LoginThrottle.objects.filter(subject=subject)
    row = counted.first()
    if row is None:
        return False
    with recorded(Act.LOCKOUT_LIFTED, row):
        deleted, _ = counted.delete()
    return deleted > 0
