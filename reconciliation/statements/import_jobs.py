"""Import uploaded statements in the background: one at a time, the oldest first.

The request reads the file once and refuses a wrong one. The file is kept in sealed parts until its import
ends. A worker renews its lease in the commit of each batch (`core.background_jobs`). If it is killed, a
worker goes on after the last batch that was stored, so no line counts twice.
"""

import logging
import tempfile
import zlib
from datetime import datetime
from functools import partial
from typing import IO, BinaryIO

from django.db import DatabaseError, transaction

from core import clock, request_context, rows, vault
from core.background_jobs import OPEN_STATES, Abandoned, JobQueue
from core.vault import CannotOpen
from reconciliation.models import Statement, StatementImport, StatementPart
from reconciliation.statements import importing, statement_file
from reconciliation.statements.lines import InvalidStatementFile

log = logging.getLogger("reconciliation")
QUEUE = JobQueue(StatementImport, max_attempts=5)
PART_BYTES = 256 * 1024
MAX_OPEN = 20
LOCK_FILE = "SELECT pg_advisory_xact_lock(hashtextextended('statement ' || %s, 0))"


class SameFileOpen(Exception):
    """The same file of this bank waits or is being imported."""

    def __init__(self, statement: Statement) -> None:
        self.statement = statement


class TooManyOpen(Exception):
    """MAX_OPEN imports wait."""


def ask(upload: BinaryIO, name: str, *, bank: str, now: datetime) -> Statement:
    """Store the file and its import, which begins within seconds.

    Raises InvalidStatementFile, UnknownBank, SameFileOpen and TooManyOpen; then nothing is stored.
    """
    opened = StatementImport.objects.filter(state__in=OPEN_STATES)
    if opened.count() >= MAX_OPEN:
        raise TooManyOpen
    file = statement_file.open_file(upload, name)
    line_count, _ = importing.check(file, bank=bank)
    with transaction.atomic():
        rows.run(LOCK_FILE, [f"{bank} {file.sha256}"])
        same = opened.filter(statement__bank=bank, statement__file_sha256=file.sha256)
        if (other := same.select_related("statement").first()) is not None:
            raise SameFileOpen(other.statement)
        statement = importing.record(file, bank=bank, line_count=line_count, now=now)
        _store(StatementImport.objects.create(statement=statement, created_at=now), file.stream)
    return statement


def run_due() -> int:
    """Import the next file. Returns how many imports it ended."""
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
        QUEUE.fail(job)
    except DatabaseError:
        # When the lease has ended, a worker goes on.
        log.exception("statement %s was interrupted", job.statement_id)
        return 0
    _delete_parts()
    return 1


def _run(job: StatementImport) -> None:
    """Raises Abandoned and InvalidStatementFile."""
    statement = job.statement
    # Rows that the import causes name the upload.
    request_context.begin(actor=statement.actor, request_id=statement.request_id)
    if statement.completed_at is None:
        with tempfile.TemporaryFile() as copy:
            _load(job, copy)
            file = statement_file.open_file(copy, statement.file_name)
            occurrences = importing.count_occurrences(file)
            importing.run(file, statement, occurrences, clock=clock.now, hold=partial(QUEUE.renew, job))
    QUEUE.finish(job)


def _store(job: StatementImport, stream: BinaryIO) -> None:
    stream.seek(0)
    for number, content in enumerate(iter(lambda: stream.read(PART_BYTES), b"")):
        part = StatementPart(background_import=job, number=number)
        # As latin-1 text, which can hold any bytes.
        text = zlib.compress(content, level=1).decode("latin-1")
        part.content_sealed = vault.seal(text, context=part.context)
        part.save(force_insert=True)


def _load(job: StatementImport, target: IO[bytes]) -> None:
    """Raises CannotOpen and zlib.error."""
    for part in job.parts.order_by("number").iterator(chunk_size=10):
        text = vault.open_sealed(part.content_sealed, context=part.context)
        target.write(zlib.decompress(text.encode("latin-1")))


def _delete_parts() -> None:
    """The parts of imports that have ended. Their lines are stored, or the person imports the file again."""
    StatementPart.objects.exclude(background_import__state__in=OPEN_STATES).delete()
