"""What a worker can write to a file: a list of the console, or what the accountant needs of a month."""

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import date, datetime
from typing import IO, Any

from django.contrib import admin
from django.contrib.admin.exceptions import DisallowedModelAdminLookup
from django.contrib.admin.options import IncorrectLookupParameters
from django.contrib.admin.views.main import ChangeList
from django.db import DatabaseError, connection
from django.db.models import QuerySet
from django.http import HttpRequest, QueryDict
from django.utils.text import capfirst
from django.utils.translation import gettext as _

from audit_trail.pages import ReadOnlyAdmin
from console.exports import monthly, pack
from console.exports.monthly import MonthError
from console.models import ExportFailure
from core import clock
from core.console import admin_exports, spreadsheets
from core.console.spreadsheets import CSV, XLSX, ZIP, FileType
from core.database import replica
from core.database.sessions import limit_statements
from merchants import modes
from merchants.models import Merchant, Mode
from operations.evidence import files, packs, pages as evidence_pages

MONTHLY_REPORT, EVIDENCE = "monthly_report", "payments.evidence"
PDF = FileType("pdf", "application/pdf", is_text=False)
JSON = FileType("json", "application/json", is_text=True)
FILE_TYPES = {each.name: each for each in (CSV, XLSX, ZIP, PDF, JSON)}
# Payments in a file: 60 MB of memory, and 20 s of CPU.
MAX_EVIDENCE = {"json": (10_000, ExportFailure.TOO_LARGE), "pdf": (200, ExportFailure.TOO_LONG_TO_PRINT)}
# Each page is a statement of its own that continues after the last primary key, so none reads skipped rows.
PAGE_ROWS = 2_000
COUNT_SECONDS = 10
# Shorter than the lease of a worker, which cannot renew it during a statement.
STATEMENT_SECONDS = 60
Follow = Callable[[Iterable[Any], int | None], Iterator[Any]]
"""Passes things on while the worker shows its progress; the number is how many there are, if it is known."""


class NotPossible(Exception):
    """The export fails."""

    def __init__(self, failure: ExportFailure) -> None:
        self.failure = failure


class Source:
    """What becomes a file. The query of the request has the filters."""

    name: str
    file_name: str
    file_types: tuple[FileType, ...] = (CSV, XLSX)
    object_type: str
    """Of the audit record."""
    shows_personal_data = False
    """To staff who may see names and messages of customers."""

    def may_read(self, request: HttpRequest) -> bool:
        """Whether the person may see it, beside the permission to export."""
        return True

    def period(self, query: QueryDict, asked_on: date) -> str:
        """The day or the month in the name of the file."""
        return str(asked_on)

    def write(self, request: HttpRequest, file: IO[bytes], file_type: FileType, follow: Follow) -> int:
        """Write the file and return its number of rows. Raises NotPossible."""
        raise NotImplementedError


class ListSource(Source):
    """A list of the console."""

    def __init__(self, page: ReadOnlyAdmin) -> None:
        self._page = page
        self.name = str(capfirst(page.opts.verbose_name_plural))
        self.file_name, self.object_type = str(page.opts.model_name), page.opts.label_lower
        self.shows_personal_data = page.shows_personal_data

    def may_read(self, request: HttpRequest) -> bool:
        return self._page.has_view_permission(request)

    def write(self, request: HttpRequest, file: IO[bytes], file_type: FileType, follow: Follow) -> int:
        """All rows that the filters and the search find. The list may look at the newest ones only."""
        found = self._found(request)
        columns = admin_exports.columns_of(self._page)
        header = [name for column in columns for name in column.headers]
        lines = admin_exports.cells(_newest_first(found, self._page.prepare_export), columns)
        return spreadsheets.write(file, file_type, header, follow(lines, _count(found)))

    def _found(self, request: HttpRequest) -> QuerySet[Any]:
        try:
            changes = self._page.get_changelist_instance(request)
            changes.root_queryset = self._page.of_mode(request, self._page.get_queryset(request))
            return ChangeList.get_queryset(changes, request).select_related(None)
        except (IncorrectLookupParameters, DisallowedModelAdminLookup):
            raise NotPossible(ExportFailure.INVALID) from None


class EvidenceSource(ListSource):
    """The evidence of all payments of a list that a close has sealed."""

    file_types = (JSON, PDF)

    def __init__(self, page: ReadOnlyAdmin) -> None:
        super().__init__(page)
        self.name, self.file_name = _("Evidence"), "evidence"

    def may_read(self, request: HttpRequest) -> bool:
        return super().may_read(request) and request.user.has_perm(evidence_pages.PERMISSION)

    def write(self, request: HttpRequest, file: IO[bytes], file_type: FileType, follow: Follow) -> int:
        limit, failure = MAX_EVIDENCE[file_type.name]
        wanted = list(self._found(request).order_by("-pk").values_list("pk", flat=True)[: limit + 1])
        if len(wanted) > limit:
            raise NotPossible(failure)
        pack = packs.pack(wanted, follow=lambda found: follow(found, len(wanted)))
        if not pack["payments"]:
            raise NotPossible(ExportFailure.NOT_CLOSED)
        file.write(files.write(pack, file_type.name))
        return len(pack["payments"])


class ReportSource(Source):
    """The accountant's pack of a month, or the totals of all merchants: a statement for each merchant."""

    file_name, object_type = "accountant", "ledger.entry"
    file_types = (XLSX, ZIP, PDF)

    def __init__(self) -> None:
        self.name = _("Monthly report")

    def period(self, query: QueryDict, asked_on: date) -> str:
        month = str(monthly.parse(query.get("month", ""), asked_on))
        return "-".join(filter(None, [month, query.get("merchant")]))

    def write(self, request: HttpRequest, file: IO[bytes], file_type: FileType, follow: Follow) -> int:
        now = clock.now()
        try:
            month = monthly.parse(request.GET.get("month", ""), now.astimezone(clock.BANGKOK).date())
        except MonthError:
            raise NotPossible(ExportFailure.INVALID) from None
        merchant_id = request.GET.get("merchant", "")
        if merchant_id and not Merchant.objects.filter(pk=merchant_id).exists():
            raise NotPossible(ExportFailure.INVALID)
        mode = modes.chosen(request)
        reports = list(follow(_reports(month, merchant_id, mode, now), None))
        if file_type is not PDF:
            # The tables of a merchant are read while they are written; the reports of all have few lines.
            sheets = (
                pack.sheets(reports[0], month, now) if merchant_id else pack.totals(reports, mode, month, now)
            )
            followed = (replace(sheet, rows=follow(sheet.rows, None)) for sheet in sheets)
            is_buddhist = monthly.is_buddhist()
            return spreadsheets.write_sheets(file, file_type, followed, is_buddhist=is_buddhist)
        # Only here, because the library of documents is large.
        from console.exports import monthly_document
        from core.drawing import pdf

        try:
            file.write(monthly_document.write(month, reports, now))
        except pdf.TooManyRows:
            raise NotPossible(ExportFailure.TOO_LONG_TO_PRINT) from None
        return sum(len(report.lines) for report in reports)


def _newest_first(found: QuerySet[Any], prepare: Callable[[list[Any]], None]) -> Iterator[Any]:
    """The rows in the order of their primary keys, without those that are added meanwhile."""
    read: Callable[[QuerySet[Any]], list[Any]] = replica.reads(list)
    page = read(found.order_by("-pk")[:PAGE_ROWS])
    while page:
        prepare(page)
        yield from page
        page = read(found.filter(pk__lt=page[-1].pk).order_by("-pk")[:PAGE_ROWS])


def _count(found: QuerySet[Any]) -> int | None:
    try:
        with limit_statements(connection, COUNT_SECONDS):
            return found.order_by().count()
    except DatabaseError:  # then the page shows only how many rows are written
        return None


def _reports(
    month: monthly.Month, merchant_id: str, mode: Mode, now: datetime
) -> Iterator[monthly.MerchantMonth]:
    """The reports of one merchant, or of all of a mode that had a balance or an entry, sorted by name."""
    of_mode = Merchant.objects.filter(mode=mode).order_by("name", "pk").values_list("pk", flat=True)
    wanted = [merchant_id] if merchant_id else of_mode
    for each in wanted:
        with limit_statements(connection, STATEMENT_SECONDS):
            found = monthly.read(month, each, until=month.until(now))
        yield from (report for report in found if merchant_id or report.is_used)


def of(label: str) -> Source | None:
    """The source with this label, such as `payments.payment`, or None."""
    if label == MONTHLY_REPORT:
        return ReportSource()
    found = {model._meta.label_lower: page for model, page in admin.site._registry.items()}
    page = found.get("payments.payment" if label == EVIDENCE else label)
    if label == EVIDENCE and isinstance(page, ReadOnlyAdmin):
        return EvidenceSource(page)
    return ListSource(page) if isinstance(page, ReadOnlyAdmin) else None
