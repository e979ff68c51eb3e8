"""Failed logins per subject, and the lock-out that follows too many of them.

They are rows and not counters in Redis: a lock-out must hold while Redis is away, and staff must see it
and be able to lift it. The hashing slot bounds how many are written: about two a second and process.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import F
from django.db.models.functions import Greatest

from console.models import LoginFailures
from core import rows, security_log
from core.security_log import SecurityEvent

LOCKOUT = timedelta(minutes=15)
# Rows that ended are removed as new ones are written, a few at a time.
REMOVED_AT_ONCE = 20
_COUNT = """
    WITH ended AS (
        DELETE FROM console_loginfailures WHERE subject IN (
            SELECT subject FROM console_loginfailures WHERE ends_at <= %(now)s AND subject <> ALL(%(names)s)
            ORDER BY ends_at LIMIT %(removed)s FOR UPDATE SKIP LOCKED
        )
    )
    INSERT INTO console_loginfailures AS known (subject, failures, ends_at)
    SELECT name, 1, %(ends_at)s FROM unnest(%(names)s::text[]) AS name
    ON CONFLICT (subject) DO UPDATE SET
        failures = CASE WHEN known.ends_at <= %(now)s THEN 1 ELSE known.failures + 1 END,
        ends_at = EXCLUDED.ends_at
    RETURNING subject, failures
"""


@dataclass(frozen=True, slots=True)
class Subject:
    """What attempts are counted for, and how many may fail within LOCKOUT of each other."""

    name: str
    limit: int


class LockedOutError(Exception):
    """Too many failed logins of one subject."""

    def __init__(self, retry_after: int) -> None:
        self.retry_after = retry_after
        super().__init__(f"locked out for {retry_after} seconds")


def refuse_locked(subjects: Sequence[Subject], *, now: datetime) -> None:
    """Raises LockedOutError. An attempt while locked out is not counted: the lock-out ends in time."""
    limits = {subject.name: subject.limit for subject in subjects}
    known = LoginFailures.objects.filter(subject__in=limits, ends_at__gt=now)
    ends = [row.ends_at for row in known if row.failures >= limits[row.subject]]
    if ends:
        raise LockedOutError(max(1, round((max(ends) - now).total_seconds())))


def count_attempt(subjects: Sequence[Subject], *, now: datetime) -> set[Subject]:
    """Count a failure for each before the password is checked; those for which it is the last allowed one.

    Raises LockedOutError above a limit.
    """
    # Sorted, so that two processes never wait for each other in a circle.
    limits = {subject.name: subject.limit for subject in sorted(subjects, key=lambda each: each.name)}
    counted = dict(
        rows.run(
            _COUNT, {"now": now, "ends_at": now + LOCKOUT, "names": list(limits), "removed": REMOVED_AT_ONCE}
        )
    )
    if any(failures > limits[name] for name, failures in counted.items()):
        raise LockedOutError(int(LOCKOUT.total_seconds()))
    return {subject for subject in subjects if counted[subject.name] == subject.limit}


def report(locked_out: Iterable[Subject]) -> None:
    """Write each lock-out to the security log."""
    for subject in locked_out:
        security_log.record(SecurityEvent.LOCK_OUT, subject=subject.name)


def forgive(subjects: Sequence[Subject]) -> None:
    """After a login: the user's failures count no more, and the attempt is taken off the address.

    The address keeps its other failures: one valid account must not pay for guesses at others.
    """
    names = [subject.name for subject in subjects]
    is_address = {"subject__startswith": "address:"}
    known = LoginFailures.objects.filter(subject__in=names)
    known.exclude(**is_address).delete()
    known.filter(**is_address).update(failures=Greatest(F("failures") - 1, 0))


def lift(subject: str) -> bool:
    """End the lock-out of a subject, such as `user:somsri`. Whether there was anything to end."""
    deleted, _ = LoginFailures.objects.filter(subject=subject).delete()
    return deleted > 0
