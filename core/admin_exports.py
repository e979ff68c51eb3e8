"""Lists of the console as files: the rows that a list shows with its filters and search, all columns whole.

The columns come from the list itself: fields of the model as they are stored, amounts in baht, and each time
in UTC and in Bangkok. `export_columns` of a list names others.
"""

import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import IO, Any, ClassVar

from django.conf import settings
from django.contrib import admin
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ChangeList
from django.core.exceptions import FieldDoesNotExist, PermissionDenied
from django.db import OperationalError, connection, transaction
from django.db.models import Model, QuerySet
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import render
from django.urls import URLPattern, path, reverse
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from psycopg.errors import QueryCanceled

from core import (
    admin_columns,
    admin_refusals,
    clock,
    money,
    personal_data,
    rows,
    security_log,
    spreadsheets,
    staff_acts,
)
from core.postgres import replica
from core.postgres.sessions import limit_statements
from core.security_log import SecurityEvent
from core.spreadsheets import Cell, FileType

PERMISSION = "audit_trail.export_lists"
# Each page is a statement of its own that continues after the last primary key, so none reads skipped rows.
PAGE_ROWS = 2_000
# A web thread is held for so long at most.
DEADLINE_SECONDS = 20


class TooMuch(Exception):
    """The export has too many rows, or takes too long, for a page that waits."""


@dataclass(frozen=True, slots=True)
class ExportColumn:
    """One field of a row and the columns that it becomes."""

    headers: tuple[str, ...]
    cells: Callable[[Any], tuple[Cell, ...]]


class ExportPages(admin.ModelAdmin[Any]):
    """Adds the links CSV and Excel to a list."""

    export_columns: ClassVar[Sequence[str] | None] = None
    """Fields of the model. A method `export_<name>` of the page gives another value than the field."""

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.export_view)
        name = f"{self.opts.app_label}_{self.opts.model_name}_export"
        return [path("export/<slug:name>/", view, name=name), *super().get_urls()]

    def export_links(self, request: HttpRequest, changes: ChangeList) -> list[tuple[str, str]]:
        """Name and address of each file type, with the filters of the list."""
        if not request.user.has_perm(PERMISSION):
            return []
        page = f"admin:{self.opts.app_label}_{self.opts.model_name}_export"
        query = changes.get_query_string(remove=["p", "all", "e"])
        return [
            (label, reverse(page, args=[name]) + query) for label, name in (("CSV", "csv"), ("Excel", "xlsx"))
        ]

    def export_view(self, request: HttpRequest, name: str) -> HttpResponse:
        """Answer with the file. Raises Http404 and PermissionDenied."""
        file_type = spreadsheets.FILE_TYPES.get(name)
        if file_type is None:
            raise Http404
        if not (self.has_view_permission(request) and request.user.has_perm(PERMISSION)):
            raise PermissionDenied
        try:
            found = self.export_rows(request)
        except IncorrectLookupParameters:
            return HttpResponseRedirect(self._list_url() + "?e=1")
        with tempfile.TemporaryFile() as file:
            try:
                self._export(request, file, file_type, found)
            except TooMuch as refusal:
                return self._offer(request, file_type, str(refusal))
            except AlreadyRunning:
                return busy(request)
            return answer(file, file_type, self.export_name(file_type))

    def export_rows(self, request: HttpRequest) -> QuerySet[Any]:
        """All rows that the filters and the search find. The list may look at the newest ones only.

        Raises IncorrectLookupParameters.
        """
        changes = self.get_changelist_instance(request)
        changes.root_queryset = self.get_queryset(request)
        found: QuerySet[Any] = ChangeList.get_queryset(changes, request)
        return found.select_related(None)

    def _offer(self, request: HttpRequest, file_type: FileType, message: str) -> HttpResponse:
        """Offer to write the file in the background."""
        context = {
            **self.admin_site.each_context(request),
            "title": _("The file is large"),
            "message": message,
            "list": self.opts.label_lower,
            "list_url": f"{self._list_url()}?{request.GET.urlencode()}",
            "query": request.GET.urlencode(),
            "file_type": file_type.name,
        }
        return render(request, "admin/export_offer.html", context, status=422)

    def export_name(self, file_type: FileType) -> str:
        day = clock.now().astimezone(clock.BANGKOK).date()
        return f"{self.opts.model_name}-{day}.{file_type.name}"

    def _export(
        self, request: HttpRequest, file: IO[bytes], file_type: FileType, found: QuerySet[Any]
    ) -> None:
        """Write the file and its audit record in one transaction. Raises TooMuch and AlreadyRunning."""
        columns = columns_of(self)
        header = [name for column in columns for name in column.headers]
        with transaction.atomic():
            only_one(request.user.get_username())
            count = spreadsheets.write(file, file_type, header, cells(_bounded(found), columns))
            details = {"list": self.opts.label_lower, "file": file_type.name, "rows": count}
            staff_acts.recorder().exported(
                self.opts.label_lower, details | {"filter": request.GET.urlencode()}
            )
        if getattr(self, "shows_personal_data", False) and not personal_data.is_hidden():
            subject = f"{self.opts.model_name}:export"
            security_log.record(SecurityEvent.PERSONAL_DATA_VIEWED, subject=subject)

    def _list_url(self) -> str:
        return reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_changelist")


def answer(file: IO[bytes], file_type: FileType, name: str) -> HttpResponse:
    """A file as a download."""
    file.seek(0)
    return download(file.read(), file_type.content_type, name)


def download(content: bytes, content_type: str, name: str) -> HttpResponse:
    response = HttpResponse(content, content_type=content_type)
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


class AlreadyRunning(Exception):
    """The person has an export that runs."""


def only_one(user: str) -> None:
    """Hold the lock of a person's export until the commit, in all processes. Raises AlreadyRunning."""
    (is_free,) = rows.run(
        "SELECT pg_try_advisory_xact_lock(hashtextextended('export:' || %s, 0))", [user]
    ).fetchone()
    if not is_free:
        raise AlreadyRunning


def busy(request: HttpRequest) -> HttpResponse:
    """The page for a person who has an export that runs."""
    message = _("Your last export still runs. Wait until it has ended.")
    return admin_refusals.page(request, _("Not now"), message, status=429)


def _bounded(found: QuerySet[Any]) -> Iterator[Any]:
    """The rows of a direct export. Raises TooMuch."""
    limit, deadline = settings.EXPORT_MAX_ROWS, time.monotonic() + DEADLINE_SECONDS
    try:
        with limit_statements(connection, DEADLINE_SECONDS):
            # Only the keys, because a refusal must be fast.
            if found.order_by("-pk").values_list("pk")[limit : limit + 1].exists():
                text = _("The list has more than %(count)s rows. Choose narrower filters.")
                raise TooMuch(text % {"count": f"{limit:,}"})
            for row in newest_first(found):
                if time.monotonic() > deadline:
                    raise TooMuch(_("The export takes too long. Choose narrower filters."))
                yield row
    except OperationalError as error:
        if isinstance(error.__cause__, QueryCanceled):
            raise TooMuch(_("The export takes too long. Choose narrower filters.")) from error
        raise


def newest_first(found: QuerySet[Any]) -> Iterator[Any]:
    """The rows in the order of their primary keys, without those that are added meanwhile."""
    read: Callable[[QuerySet[Any]], list[Any]] = replica.reads(list)
    page = read(found.order_by("-pk")[:PAGE_ROWS])
    while page:
        yield from page
        page = read(found.filter(pk__lt=page[-1].pk).order_by("-pk")[:PAGE_ROWS])


def cells(found: Iterable[Any], columns: Sequence[ExportColumn]) -> Iterator[list[Cell]]:
    """The cells of each row, masked for staff who may not see personal data."""
    for row in found:
        personal_data.conceal(row)
        yield [cell for column in columns for cell in column.cells(row)]


def columns_of(page: Any) -> list[ExportColumn]:
    """The columns of a list: those that `export_columns` names, or those of the list that are fields."""
    names = page.export_columns if page.export_columns is not None else _fields_of_list(page)
    found = [_column(page, name) for name in names]
    if any(column.headers[0].endswith(f" ({money.CURRENCY})") for column in found):
        found.append(ExportColumn((_("Currency"),), lambda row: (money.CURRENCY,)))
    return found


def _fields_of_list(page: Any) -> list[str]:
    """The primary key, and the columns of the list that are fields. `baht` stands for `amount`."""
    named = ["amount" if name == "baht" else name for name in page.list_display]
    names = [page.opts.pk.name, *(name for name in named if _has_field(page.model, name))]
    return list(dict.fromkeys(names))


def _has_field(model: type[Model], name: str) -> bool:
    try:
        model._meta.get_field(name)
    except FieldDoesNotExist:
        return False
    return True


def _column(page: Any, name: str) -> ExportColumn:
    is_field = _has_field(page.model, name)
    field: Any = page.model._meta.get_field(name) if is_field else None
    label = str(capfirst(field.verbose_name if is_field else name.replace("_", " ")))
    show = getattr(page, f"export_{name}", None)
    value: Callable[[Any], Any] = show or (lambda row: getattr(row, field.attname))
    kind = field.get_internal_type() if is_field else ""
    if admin_columns.AMOUNT_NAME.search(name) and kind in ("", "BigIntegerField"):
        return ExportColumn((f"{label} ({money.CURRENCY})",), lambda row: (_baht(value(row)),))
    if kind == "DateTimeField":
        headers = (_("%(name)s (UTC)") % {"name": label}, _("%(name)s (Bangkok)") % {"name": label})
        return ExportColumn(headers, lambda row: _times(value(row)))
    return ExportColumn((label,), lambda row: (_cell(value(row)),))


def _baht(satang: int | None) -> Decimal | None:
    return None if satang is None else money.decimal(satang)


def _times(at: datetime | None) -> tuple[Cell, Cell]:
    if at is None:
        return None, None
    utc, bangkok = (at.astimezone(zone).replace(tzinfo=None, microsecond=0) for zone in (UTC, clock.BANGKOK))
    return utc, bangkok


def _cell(value: Any) -> Cell:
    if isinstance(value, bool):
        return "true" if value else "false"
    if value is None or isinstance(value, int | date):
        return value
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
