"""Import uploaded statements in the background: one at a time, the oldest first.

The upload reads the file once and refuses a wrong one. Staff see what was understood, and begin the import.
The file is kept in sealed parts until its import ends, or for an hour if nobody begins it. A worker renews
its lease in the commit of each batch (`core.work.background_jobs`). If it is killed, a worker goes on after
the last batch that was stored, so no line counts twice.
"""

import logging
import tempfile
import zlib
from datetime import datetime, timedelta
from functools import partial
from typing import BinaryIO

from django.db import DatabaseError, transaction
from django.db.models import QuerySet
from django.utils.translation import gettext as _

from audit_trail.acts import ActRefused
from core import clock, request_context, vault
from core.database import rows
from core.vault import CannotOpen
from core.work.background_jobs import OPEN_STATES, Abandoned, JobQueue, JobState
from reconciliation.models import Statement, StatementImport, StatementPart, StatementUpload
from reconciliation.statements import importing, statement_file
from reconciliation.statements.lines import InvalidStatementFile, ReaderBusy
from reconciliation.statements.statement_file import FileContents, StatementFile

log = logging.getLogger("reconciliation")
QUEUE = JobQueue(StatementImport, max_attempts=5)
PART_BYTES = 256 * 1024
MAX_OPEN = 20
KEPT = timedelta(hours=1)
LOCK_FILE = "SELECT pg_advisory_xact_lock(hashtextextended('statement ' || %s, 0))"


class SameFileOpen(Exception):
    """The same file of this bank waits or is being imported."""

    def __init__(self, statement: Statement) -> None:
        self.statement = statement


def upload(
    stream: BinaryIO, name: str, *, bank: str, now: datetime
) -> tuple[StatementUpload, StatementFile, FileContents]:
    """Keep a file for `begin`, in place of the one that this person uploaded before. Imports nothing.

    Raises InvalidStatementFile, ReaderBusy, UnknownBank and ActRefused; then nothing is stored.
    """
    _check_room()
    file = statement_file.open_file(stream, name)
    found = importing.check(file, bank=bank)
    with transaction.atomic():
        _delete(StatementUpload.objects.filter(actor=request_context.current().actor))
        columns = importing.columns_of(file, found, bank=bank, now=now)
        kept = StatementUpload.objects.create(**columns, **request_context.columns())
        stream.seek(0)
        for number, content in enumerate(iter(lambda: stream.read(PART_BYTES), b"")):
            part = StatementPart(statement_id=kept.pk, number=number)
            # As latin-1 text, which can hold any bytes.
            text = zlib.compress(content, level=1).decode("latin-1")
            part.content_sealed = vault.seal(text, context=part.context)
            part.save(force_insert=True)
    return kept, file, found


def begin(upload_id: str, *, now: datetime) -> Statement:
    """Record the import of a file that the same person uploaded. A worker does it within seconds.

    Raises SameFileOpen and ActRefused; then nothing changes. A file is kept for an hour, or until the person
    uploads another one.
    """
    _check_room()
    with transaction.atomic():
        own = StatementUpload.objects.filter(pk=upload_id, actor=request_context.current().actor)
        kept = own.select_for_update().first()
        if kept is None:
            raise ActRefused(_("The file is not kept any more. Upload it again."))
        rows.run(LOCK_FILE, [f"{kept.bank} {kept.file_sha256}"])
        same = QUEUE.open_jobs().filter(statement__bank=kept.bank, statement__file_sha256=kept.file_sha256)
        if (other := same.select_related("statement").first()) is not None:
            raise SameFileOpen(other.statement)
        known = {name: getattr(kept, name) for name in importing.COLUMNS}
        statement = importing.record(**known | {"created_at": now})
        StatementImport.objects.create(statement=statement, created_at=now)
        kept.delete()
    return statement


def old_uploads(now: datetime) -> QuerySet[StatementUpload]:
    """Those whose import nobody began in time."""
    return StatementUpload.objects.filter(created_at__lt=now - KEPT)


def run_due() -> int:
    """Import the next file. Returns how many imports it ended."""
    _delete(old_uploads(clock.now()))
    _delete_parts()
    job: StatementImport | None = QUEUE.claim()
    if job is None:
        return 0
    try:
        _run(job)
    except Abandoned:
        return 0
    except (InvalidStatementFile, CannotOpen, zlib.error) as error:
        log.error("statement %s cannot be imported: %s", job.statement_id, type(error).__name__)
        QUEUE.end(job, JobState.FAILED)
    except ReaderBusy:
        # When the lease has ended, a worker goes on.
        log.warning("statement %s waits for another Excel file", job.statement_id)
        return 0
    except DatabaseError:  # the same
        log.exception("statement %s was interrupted", job.statement_id)
        return 0
    _delete_parts()
    return 1


def _run(job: StatementImport) -> None:
    """Raises Abandoned, CannotOpen, zlib.error, InvalidStatementFile and ReaderBusy."""
    statement = job.statement
    # Rows that the import causes name the upload.
    request_context.begin(actor=statement.actor, request_id=statement.request_id)
    if statement.completed_at is None:
        with tempfile.TemporaryFile() as copy:
            for part in StatementPart.objects.filter(statement_id=job.pk).order_by("number").iterator(10):
                text = vault.open_sealed(part.content_sealed, context=part.context)
                copy.write(zlib.decompress(text.encode("latin-1")))
            file = statement_file.open_file(copy, statement.file_name)
            importing.run(file, statement, clock=clock.now, hold=partial(QUEUE.renew, job))
    QUEUE.end(job, JobState.DONE)


def _check_room() -> None:
    if QUEUE.open_jobs().count() >= MAX_OPEN:
        raise ActRefused(_("Too many imports wait. Try again when some have ended."))


def _delete(uploads: QuerySet[StatementUpload]) -> None:
    """Locked first, so that none of them begins meanwhile without its parts."""
    with transaction.atomic():
        found = list(uploads.select_for_update().order_by("pk").values_list("pk", flat=True))
        StatementUpload.objects.filter(pk__in=found).delete()
        StatementPart.objects.filter(statement_id__in=found).delete()


def _delete_parts() -> None:
    """The parts of imports that have ended. Their lines are stored, or the person imports the file again."""
    ended = StatementImport.objects.exclude(state__in=OPEN_STATES)
    StatementPart.objects.filter(statement_id__in=ended.values("pk")).delete()
