"""What each nightly job does. A job returns how many differences it found, and logs the first ones."""

import logging
from collections.abc import Callable, Iterator
from datetime import date, datetime, timedelta

from django.conf import settings

from audit_trail.chain import Verification
from core import clock
from ledger import accounts
from operations.audit import findings, runner
from operations.audit.daily_close import closing
from operations.data_protection import anonymisation
from operations.models import NightlyJob
from operations.nightly import retention
from reconciliation.statements import dropped_files, reconciliation

log = logging.getLogger("nightly")
MAX_LOGGED = 100


def is_enabled(job: NightlyJob) -> bool:
    """Whether the settings ask for the job, and have what it needs."""
    needs = {
        NightlyJob.DAILY_CLOSE: settings.CLOSE_SIGNING_KEY,
        NightlyJob.IMPORT_STATEMENTS: settings.STATEMENTS_DIR,
        NightlyJob.ANONYMISE: settings.PERSONAL_DATA_RETENTION_DAYS,
    }
    return job.value in settings.NIGHTLY_JOBS and bool(needs.get(job, True))


def run(job: NightlyJob, now: datetime) -> int:
    """Return the number of differences, whose texts name nobody. Raises whatever stops the job."""
    count = 0
    for count, text in enumerate(_JOBS[job](now) or (), 1):
        if count <= MAX_LOGGED:
            log.error("%s: %s", job.value, text)
    return count


def _daily_close(now: datetime) -> None:
    for made in closing.close_due(clock.now):
        log.info("daily_close: %s is closed: number %d, hash %s", made.day, made.number, made.hash)


def _audit(now: datetime) -> Iterator[str]:
    chain = Verification(None)
    with runner.snapshot():
        yield from findings.find(chain)
        for warning in runner.warnings(now):
            log.warning("audit: %s", warning)
    log.info("audit: the newest link of the audit trail: %d:%s", chain.number, chain.hash)


def _retention(now: datetime) -> None:
    for change in retention.apply(now):
        log.info("retention: %s", change)


def _reconcile(now: datetime) -> Iterator[str]:
    """Yesterday in Bangkok. The sandbox bank, whose money is not real, has no statements."""
    yesterday = now.astimezone(clock.BANGKOK).date() - timedelta(days=1)
    for bank in reconciliation.banks_with_activity(yesterday):
        if bank != accounts.SANDBOX:
            yield from _reconcile_bank(bank, yesterday)


def _reconcile_bank(bank: str, day: date) -> Iterator[str]:
    """The differences; totals that differ without any other difference are one."""
    count, comparison = 0, reconciliation.compare_totals(bank, day)
    if not comparison.has_statement:
        log.warning("reconcile: %s: no statement of %s was imported", bank, day)
    for count, each in enumerate(reconciliation.find_differences(bank, day), 1):  # noqa: B007
        yield f"{bank} {day}: {each.what}: {each.subject_id}, {each.amount} satang"
    if not count and comparison.theirs != comparison.ours:
        yield f"{bank} {day}: the totals differ"


def _anonymise(now: datetime) -> None:
    counts = anonymisation.anonymise(before=now - timedelta(days=settings.PERSONAL_DATA_RETENTION_DAYS))
    log.info("anonymise: %s", ", ".join(f"{name}: {count}" for name, count in counts.items()) or "nothing")


# A job yields its differences, if it looks for some.
_JOBS: dict[NightlyJob, Callable[[datetime], Iterator[str] | None]] = {
    NightlyJob.DAILY_CLOSE: _daily_close,
    NightlyJob.AUDIT: _audit,
    NightlyJob.RETENTION: _retention,
    NightlyJob.IMPORT_STATEMENTS: lambda now: dropped_files.import_all(),
    NightlyJob.RECONCILE: _reconcile,
    NightlyJob.ANONYMISE: _anonymise,
}
