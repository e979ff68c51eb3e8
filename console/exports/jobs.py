"""Write lists and reports to files in the background: two at a time, for one person one at a time.

A worker renews its lease with each page of rows (`core.work.background_jobs`). If it is killed, a worker
begins again. Parts and the state `done` are one commit, so nobody is offered half a file.
"""

import gzip
import itertools
import logging
import tempfile
import time
from collections.abc import Iterable, Iterator
from contextlib import nullcontext, suppress
from datetime import datetime, timedelta
from functools import partial
from typing import IO, Any

from django.conf import settings
from django.contrib.auth.models import User
from django.db import DatabaseError, IntegrityError, transaction
from django.http import HttpRequest, QueryDict
from django.utils import translation

from audit_trail import recording
from console.exports import sources
from console.exports.sources import NotPossible, Source
from console.models import Export, ExportFailure, ExportPart
from core import request_context
from core.console import admin_exports, personal_data
from core.observing import security_log
from core.observing.security_log import SecurityEvent
from core.work.background_jobs import Abandoned, JobQueue, JobState
from core.work.wakeup import WakeupSender

log = logging.getLogger("exports")
# Two, so that a small file does not wait for a large one.
QUEUE = JobQueue(Export, max_running=2)
# Task and queue.
WORK = ("console.run_exports", "default")
_workers = WakeupSender(*WORK, settings.BROKER)
RENEW_ROWS = 2_000
RENEW_SECONDS = 10.0
PART_BYTES = 4 * 1024 * 1024
# The web server holds a file in memory to send it.
MAX_FILE_BYTES = 64 * 1024 * 1024
KEPT = timedelta(days=7)


class AlreadyOpen(Exception):
    """The person has an export that waits or runs."""


def ask(owner: User, *, list: str, query: str, file_type: str, now: datetime) -> Export:
    """Ask for a file in the language of the present request, and wake a worker. Raises AlreadyOpen."""
    language = translation.get_language() or settings.LANGUAGE_CODE
    asked = {"list": list, "query": query, "file_type": file_type, "language": language}
    try:
        with transaction.atomic():
            transaction.on_commit(_workers.wake, robust=True)
            return Export.objects.create(owner=owner, created_at=now, **asked)
    except IntegrityError:
        raise AlreadyOpen from None


def run_due() -> int:
    """Write the exports that wait, one after the other. Returns how many ended."""
    count = 0
    while (export := QUEUE.claim(rows=0)) is not None:
        try:
            _write(export)
        except Abandoned:
            continue
        except (NotPossible, DatabaseError) as error:
            failure = error.failure if isinstance(error, NotPossible) else ExportFailure.OTHER
            log.warning("an export failed: %s (%s)", failure.value, type(error).__name__)
            with suppress(Abandoned):
                QUEUE.end(export, JobState.FAILED, failure=failure)
        count += 1
    return count


def _write(export: Export) -> None:
    """Raises Abandoned and NotPossible."""
    source, owner = sources.of(export.list), export.owner
    request = HttpRequest()  # as the list had it, of the owner
    request.method, request.GET, request.user = "GET", QueryDict(export.query), owner
    may_export = owner.is_active and owner.has_perm(admin_exports.PERMISSION)
    if source is None or not may_export or not source.may_read(request):
        raise NotPossible(ExportFailure.NOT_ALLOWED)
    hides = not owner.has_perm(personal_data.PERMISSION)
    request_context.set_actor(f"staff:{owner.get_username()}", hides_personal_data=hides)
    file_type = sources.FILE_TYPES[export.file_type]
    with tempfile.TemporaryFile() as file:
        packed: Any = nullcontext(file)  # other formats are compressed by themselves
        if file_type.is_text:
            packed = gzip.GzipFile(fileobj=file, mode="wb", compresslevel=1)
        with translation.override(export.language), packed as target:
            follow = partial(_renewing, export, file, file_type.max_rows, itertools.count(1))
            count = source.write(request, target, file_type, follow)
        _finish(export, source, file, count)


def _renewing(
    export: Export,
    file: IO[bytes],
    max_rows: int | None,
    numbers: Iterator[int],
    lines: Iterable[Any],
    total: int | None,
) -> Iterator[Any]:
    """The lines; renews the lease with each page of them, or each 10 s. Raises Abandoned and NotPossible."""
    QUEUE.renew(export, total=total)
    renewed_at = time.monotonic()
    for line, number in zip(lines, numbers, strict=False):
        if number % RENEW_ROWS == 0 or time.monotonic() > renewed_at + RENEW_SECONDS:
            renewed_at = time.monotonic()
            QUEUE.renew(export, rows=number)
            if file.tell() > MAX_FILE_BYTES:
                raise NotPossible(ExportFailure.TOO_LARGE)
        if max_rows is not None and number >= max_rows:
            raise NotPossible(ExportFailure.TOO_LARGE)
        yield line


@transaction.atomic
def _finish(export: Export, source: Source, file: IO[bytes], count: int) -> None:
    """Store the file and its audit record. Raises Abandoned and NotPossible."""
    if file.tell() > MAX_FILE_BYTES:
        raise NotPossible(ExportFailure.TOO_LARGE)
    has_personal_data = source.shows_personal_data and not personal_data.is_hidden()
    QUEUE.end(export, JobState.DONE, rows=count, has_personal_data=has_personal_data)
    file.seek(0)
    parts = iter(lambda: file.read(PART_BYTES), b"")
    for number, content in enumerate(parts):
        ExportPart.objects.create(export=export, number=number, content=content)
    details = {"list": export.list, "file": export.file_type, "rows": count, "filter": export.query}
    recording.exported(source.object_type, details)
    if has_personal_data:
        record_personal_data(source)


def record_personal_data(source: Source) -> None:
    """Record in the security log that personal data was written to a file, or left with it."""
    security_log.record(SecurityEvent.PERSONAL_DATA_VIEWED, subject=f"{source.file_name}:export")


def delete_old(now: datetime) -> int:
    """Delete files after seven days."""
    return Export.objects.filter(finished_at__lt=now - KEPT).delete()[0]
