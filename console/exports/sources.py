"""What a worker can write to a file: a list of the console, or the monthly report."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

from django.contrib import admin
from django.db import DatabaseError, connection
from django.http import HttpRequest
from django.utils.text import capfirst
from django.utils.translation import gettext as _

from console.reports import monthly
from console.reports.monthly import Month, MonthError
from core import admin_exports, clock
from core.postgres.sessions import limit_statements
from core.spreadsheets import Cell
from merchants.models import Merchant

MONTHLY_REPORT = "monthly_report"
COUNT_SECONDS = 10
# Shorter than the lease of a worker, which cannot renew it during a statement.
STATEMENT_SECONDS = 60


class NotPossible(Exception):
    """The export fails: its owner may not see it any more, it is invalid, or the file is too large."""


@dataclass(frozen=True, slots=True)
class Table:
    """A header, rows that are read one by one, and how many there will be if that is known."""

    header: list[str]
    rows: Iterator[list[Cell]]
    total: int | None


class Source(Protocol):
    """What becomes a file. The query of the request has the filters."""

    name: str
    file_name: str
    object_type: str
    """Of the audit record."""
    shows_personal_data: bool
    """To staff who may see names and messages of customers."""

    def may_read(self, request: HttpRequest) -> bool:
        """Whether the person may see it, beside the permission to export."""

    def table(self, request: HttpRequest) -> Table:
        """Raises NotPossible and IncorrectLookupParameters."""


class ListSource:
    """A list of the console."""

    def __init__(self, page: Any) -> None:
        self._page = page
        self.name = str(capfirst(page.opts.verbose_name_plural))
        self.file_name, self.object_type = page.opts.model_name, page.opts.label_lower
        self.shows_personal_data = bool(getattr(page, "shows_personal_data", False))

    def may_read(self, request: HttpRequest) -> bool:
        return bool(self._page.has_view_permission(request))

    def table(self, request: HttpRequest) -> Table:
        found = self._page.export_rows(request)
        columns = admin_exports.columns_of(self._page)
        header = [name for column in columns for name in column.headers]
        rows = admin_exports.cells(admin_exports.newest_first(found), columns)
        return Table(header, rows, _count(found))


class ReportSource:
    """The report of a month. Each merchant is a statement of its own."""

    file_name, object_type, shows_personal_data = "monthly-report", "ledger.entry", False

    def __init__(self) -> None:
        self.name = _("Monthly report")

    def may_read(self, request: HttpRequest) -> bool:
        return True

    def table(self, request: HttpRequest) -> Table:
        today = clock.now().astimezone(clock.BANGKOK).date()
        try:
            month = monthly.parse(request.GET.get("month", ""), today)
        except MonthError:
            raise NotPossible from None
        merchant_id = request.GET.get("merchant", "")
        if merchant_id and not Merchant.objects.filter(pk=merchant_id).exists():
            raise NotPossible
        header = [str(label) for label in monthly.HEADER]
        return Table(header, monthly.table(month, _reports(month, merchant_id)), None)


def _reports(month: Month, merchant_id: str) -> Iterator[monthly.MerchantMonth]:
    """The reports of one merchant, or of all that had a balance or a movement, sorted by name."""
    wanted = (
        [merchant_id] if merchant_id else Merchant.objects.order_by("name", "pk").values_list("pk", flat=True)
    )
    for each in wanted:
        with limit_statements(connection, STATEMENT_SECONDS):
            found = monthly.read(month, each)
        yield from (report for report in found if merchant_id or report.is_used)


def of(label: str) -> Source | None:
    """The source with this label, such as `payments.payment`, or None."""
    if label == MONTHLY_REPORT:
        return ReportSource()
    found = {model._meta.label_lower: page for model, page in admin.site._registry.items()}
    page = found.get(label)
    return ListSource(page) if isinstance(page, admin_exports.ExportPages) else None


def _count(found: Any) -> int | None:
    try:
        with limit_statements(connection, COUNT_SECONDS):
            return int(found.order_by().count())
    except DatabaseError:  # then the page shows only how many rows are written
        return None
