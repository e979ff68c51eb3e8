"""A worker that is killed by SIGKILL in the middle of a file, or that lost its lease."""

import io
import signal
from datetime import timedelta

import pytest
from django.db import transaction
from django.db.models.functions import Now

from core import clock
from core.database import rows
from core.work.background_jobs import Abandoned, JobState
from reconciliation.models import BankTransaction, Statement, StatementImport, StatementLine, StatementPart
from reconciliation.statements import import_jobs, importing
from tests import killed_worker
from tests.conftest import Shop
from tests.context import acting_as
from tests.reconciliation.statements.statement_files import bot_file, detail
from tests.stack import wait_until
from tests.tables import LOCKS

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db(transaction=True),
    pytest.mark.usefixtures("audit_is_clean"),
]
LINES = importing.BATCH_SIZE + 5
FILE = bot_file(
    # The last line equals the first one: only its number of occurrences tells them apart.
    *(detail(seq=f"{number + 2:06}", ref1=f"NOBODY{number:014}") for number in range(LINES - 1)),
    detail(seq="000002", ref1=f"NOBODY{0:014}"),
)
RUN = "from reconciliation.statements import import_jobs; import_jobs.run_due()"


def ask() -> Statement:
    with acting_as("staff:malee"):
        kept, *_ = import_jobs.upload(io.BytesIO(FILE), "day.txt", bank="sandbox", now=clock.now())
        return import_jobs.begin(kept.id, now=clock.now())


def end_lease() -> None:
    StatementImport.objects.update(lease_until=Now() - timedelta(seconds=1))


def check_all_is_imported_once(statement: Statement) -> None:
    statement.refresh_from_db()
    assert statement.completed_at
    assert (statement.line_count, statement.stored_count, statement.duplicate_count) == (LINES, LINES, 0)
    assert (StatementLine.objects.count(), BankTransaction.objects.count()) == (LINES, LINES)
    assert not StatementPart.objects.exists()


def test_import_goes_on_after_its_worker_was_killed(shop: Shop) -> None:
    statement = ask()
    rows.run(STOP_AT_LAST_LINE, [])
    try:
        with transaction.atomic():
            rows.run("SELECT pg_advisory_xact_lock(7)", [])
            worker = killed_worker.start(RUN)
            wait_until(lambda: rows.run(BLOCKED, []).fetchone() == (1,), 60)
            worker.send_signal(signal.SIGKILL)
            worker.wait()
        wait_until(killed_worker.has_left_the_database, 60)
    finally:
        rows.run("DROP FUNCTION stop_at_last_line CASCADE", [])
    statement.refresh_from_db()
    assert statement.stored_count == importing.BATCH_SIZE
    assert import_jobs.run_due() == 0, "another worker may still have it"
    end_lease()
    assert import_jobs.run_due() == 1
    job = StatementImport.objects.get()
    assert (job.state, job.attempts) == (JobState.DONE, 2)
    check_all_is_imported_once(statement)


# An insert of the file's last line waits until the test lets it go on.
STOP_AT_LAST_LINE = f"""
CREATE FUNCTION stop_at_last_line() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF NEW.line_number = {LINES + 1} THEN PERFORM pg_advisory_xact_lock(7); END IF;
    RETURN NEW;
END $$;
CREATE TRIGGER stop_at_last_line BEFORE INSERT ON reconciliation_statementline
    FOR EACH ROW EXECUTE FUNCTION stop_at_last_line()
"""
BLOCKED = f"SELECT count(*) FROM {LOCKS} WHERE NOT granted AND locktype = 'advisory' AND objid = 7"


def test_worker_without_its_lease_stores_no_line(shop: Shop) -> None:
    statement = ask()
    slow: StatementImport | None = import_jobs.QUEUE.claim()
    assert slow is not None
    end_lease()
    fast: StatementImport | None = import_jobs.QUEUE.claim()
    assert fast is not None
    with pytest.raises(Abandoned):
        import_jobs._run(slow)
    assert not StatementLine.objects.exists()
    import_jobs._run(fast)
    import_jobs._delete_parts()
    check_all_is_imported_once(statement)


def test_import_that_ended_before_its_job_is_only_marked_as_done(shop: Shop) -> None:
    statement = ask()
    assert import_jobs.run_due() == 1
    StatementImport.objects.update(state=JobState.RUNNING, finished_at=None)
    end_lease()
    assert import_jobs.run_due() == 1
    assert StatementImport.objects.get().state == JobState.DONE
    check_all_is_imported_once(statement)


@pytest.mark.logs_errors
def test_import_that_fails_in_the_database_is_tried_again(shop: Shop) -> None:
    statement = ask()
    rows.run("ALTER TABLE reconciliation_statementline RENAME TO elsewhere", [])
    try:
        assert import_jobs.run_due() == 0
    finally:
        rows.run("ALTER TABLE elsewhere RENAME TO reconciliation_statementline", [])
    assert StatementImport.objects.get().state == JobState.RUNNING
    end_lease()
    assert import_jobs.run_due() == 1
    check_all_is_imported_once(statement)


def test_import_that_killed_too_many_workers_fails(shop: Shop) -> None:
    ask()
    StatementImport.objects.update(state=JobState.RUNNING, attempts=import_jobs.QUEUE.max_attempts)
    end_lease()
    assert import_jobs.run_due() == 0
    assert StatementImport.objects.get().state == JobState.FAILED
    import_jobs.run_due()
    assert not StatementPart.objects.exists()
