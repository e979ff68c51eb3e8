"""Write large lists to files in the background: one at a time, for one person one at a time.

A worker renews its lease with each page of rows (`core.background_jobs`). If it is killed, a worker begins
again. Parts and the state `done` are one commit, so nobody is offered half a file.
"""

import gzip
import logging
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext, suppress
from datetime import datetime, timedelta
from typing import IO, Any

from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.auth.models import User
from django.db import DatabaseError, IntegrityError, connection, transaction
from django.http import HttpRequest, QueryDict

from console.models import Export, ExportPart
from core import (
    admin_exports,
    personal_data,
    request_context,
    spreadsheets,
    staff_acts,
)
from core.background_jobs import Abandoned, JobQueue
from core.postgres.sessions import limit_statements
from core.spreadsheets import FileType

log = logging.getLogger("exports")
QUEUE = JobQueue(Export)
RENEW_ROWS = 2_000
COUNT_SECONDS = 10
PART_BYTES = 4 * 1024 * 1024
# The web server holds a file in memory to send it.
MAX_FILE_BYTES = 64 * 1024 * 1024
KEPT = timedelta(days=7)


class AlreadyOpen(Exception):
    """The person has an export that waits or runs."""


class NotPossible(Exception):
    """The export fails: its owner may not see the list any more, or the file is too large."""


def ask(owner: User, *, list: str, query: str, file_type: str, now: datetime) -> Export:
    """Raises AlreadyOpen."""
    try:
        with transaction.atomic():
            return Export.objects.create(
                owner=owner, list=list, query=query, file_type=file_type, created_at=now
            )
    except IntegrityError:
        raise AlreadyOpen from None


def page_of(label: str) -> Any:
    """The list with this label, such as `payments.payment`, or None."""
    found = {model._meta.label_lower: page for model, page in admin.site._registry.items()}
    page = found.get(label)
    return page if isinstance(page, admin_exports.ExportPages) else None


def run_due() -> int:
    """Write the next export. Returns how many it finished."""
    export = QUEUE.claim(rows=0)
    if export is None:
        return 0
    try:
        _write(export)
    except Abandoned:
        return 0
    except (NotPossible, IncorrectLookupParameters, DatabaseError) as error:
        log.warning("an export failed: %s", type(error).__name__)
        with suppress(Abandoned):
            QUEUE.fail(export)
    return 1


def _write(export: Export) -> None:
    """Raises Abandoned, NotPossible and IncorrectLookupParameters."""
    page, request = page_of(export.list), _request_of(export)
    owner = export.owner
    if page is None or not owner.is_active or not owner.has_perm(admin_exports.PERMISSION):
        raise NotPossible
    if not page.has_view_permission(request):
        raise NotPossible
    hides = not owner.has_perm(personal_data.PERMISSION)
    request_context.set_actor(f"staff:{owner.get_username()}", hides_personal_data=hides)
    file_type = spreadsheets.FILE_TYPES[export.file_type]
    found = page.export_rows(request)
    QUEUE.renew(export, total=_count(found))
    columns = admin_exports.columns_of(page)
    header = [name for column in columns for name in column.headers]
    with tempfile.TemporaryFile() as file:
        lines = admin_exports.cells(_progressing(export, found, file, file_type.max_rows), columns)
        with _packed(file, file_type) as target:
            count = spreadsheets.write(target, file_type, header, lines)
        _finish(export, file, count)


def _packed(file: IO[bytes], file_type: FileType) -> AbstractContextManager[Any]:
    """Compresses a file that is not compressed by its own format."""
    if not file_type.is_text:
        return nullcontext(file)
    return gzip.GzipFile(fileobj=file, mode="wb", compresslevel=1)


def _request_of(export: Export) -> HttpRequest:
    """The request that the list had, as its owner."""
    request = HttpRequest()
    request.method = "GET"
    request.GET = QueryDict(export.query)
    request.user = export.owner
    return request


def _count(found: Any) -> int | None:
    try:
        with limit_statements(connection, COUNT_SECONDS):
            return int(found.order_by().count())
    except DatabaseError:  # then the page shows only how many rows are written
        return None


def _progressing(export: Export, found: Any, file: IO[bytes], max_rows: int | None) -> Iterator[Any]:
    """The rows; renews the lease with each page of them. Raises Abandoned and NotPossible."""
    for number, row in enumerate(admin_exports.newest_first(found), 1):
        if number % RENEW_ROWS == 0:
            QUEUE.renew(export, rows=number)
            if file.tell() > MAX_FILE_BYTES:
                raise NotPossible
        if max_rows is not None and number >= max_rows:
            raise NotPossible
        yield row


@transaction.atomic
def _finish(export: Export, file: IO[bytes], count: int) -> None:
    """Store the file and its audit record. Raises Abandoned and NotPossible."""
    if file.tell() > MAX_FILE_BYTES:
        raise NotPossible
    QUEUE.finish(export, rows=count)
    file.seek(0)
    parts = iter(lambda: file.read(PART_BYTES), b"")
    for number, content in enumerate(parts):
        ExportPart.objects.create(export=export, number=number, content=content)
    details = {"list": export.list, "file": export.file_type, "rows": count, "filter": export.query}
    staff_acts.recorder().exported(export.list, details)


def delete_old(now: datetime) -> int:
    """Delete files after seven days."""
    return Export.objects.filter(finished_at__lt=now - KEPT).delete()[0]
