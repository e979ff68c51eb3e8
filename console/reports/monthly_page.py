"""The page *Monthly report*, and its files."""

import tempfile
from functools import partial
from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db import OperationalError, connection, transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _
from psycopg.errors import QueryCanceled

from console.exports.sources import MONTHLY_REPORT
from console.reports import monthly
from console.reports.monthly import MerchantMonth, Month
from core import admin_exports, admin_refusals, clock, ids, spreadsheets, staff_acts
from core.admin_exports import PERMISSION
from core.postgres.sessions import limit_statements
from core.spreadsheets import FileType
from merchants.models import Merchant

# A month of a large merchant is a million entries. Only a worker has more time, and it writes no PDF.
STATEMENT_SECONDS, PDF_SECONDS = 5, 25
OFFERED_MERCHANTS = 500
PDF = "pdf"


def view(site: admin.AdminSite, request: HttpRequest) -> HttpResponse:
    """Show the report of a month, or answer with its file. Raises Http404 and PermissionDenied."""
    if not request.user.has_perm(PERMISSION):
        raise PermissionDenied
    today = clock.now().astimezone(clock.BANGKOK).date()
    merchant_id = request.GET.get("merchant", "")
    if merchant_id and not _is_known(merchant_id):
        raise Http404
    name = request.GET.get("file")
    context: dict[str, Any] = {"error": "", "reports": [], "merchant_id": merchant_id, "today": today}
    try:
        month = monthly.parse(request.GET.get("month", ""), today)
    except monthly.MonthError:
        month = monthly.parse("", today)
        context["error"] = _("Choose a month that has begun.")
    else:
        found = _read(month, merchant_id, PDF_SECONDS if name == PDF else STATEMENT_SECONDS)
        if found is not None and name is not None:
            return _answer(request, name, month, found)
        context |= {
            "reports": found,
            "is_large": found is None,
            "background": _background(month, merchant_id),
        }
    context |= site.each_context(request) | {
        "title": _("Monthly report"),
        "month": month,
        "has_ended": month.end <= clock.now(),
        "merchants": Merchant.objects.order_by("name", "pk")[:OFFERED_MERCHANTS],
    }
    return TemplateResponse(request, "admin/monthly_report.html", context)


def _read(month: Month, merchant_id: str, seconds: int) -> list[MerchantMonth] | None:
    """None if it takes longer."""
    try:
        with limit_statements(connection, seconds):
            return monthly.read(month, merchant_id)
    except OperationalError as error:
        if isinstance(error.__cause__, QueryCanceled):
            return None
        raise


def _background(month: Month, merchant_id: str) -> dict[str, Any]:
    """The form that asks a worker for the file."""
    query = urlencode({"month": str(month), "merchant": merchant_id})
    return {"list": MONTHLY_REPORT, "query": query, "file_types": (("csv", "CSV"), ("xlsx", "Excel"))}


def _is_known(merchant_id: str) -> bool:
    return ids.looks_right(merchant_id, "") and Merchant.objects.filter(pk=merchant_id).exists()


def _answer(request: HttpRequest, name: str, month: Month, reports: list[MerchantMonth]) -> HttpResponse:
    """The file, or the page that says why there is none. Raises Http404."""
    if name not in (PDF, *spreadsheets.FILE_TYPES):
        raise Http404
    make = _pdf if name == PDF else partial(_spreadsheet, spreadsheets.FILE_TYPES[name])
    try:
        with transaction.atomic():
            admin_exports.only_one(request.user.get_username())
            content_type, content, count = make(month, reports)
            merchant_id = request.GET.get("merchant", "")
            details = {"month": str(month), "merchant": merchant_id, "file": name, "rows": count}
            staff_acts.recorder().exported("ledger.entry", details)
    except admin_exports.AlreadyRunning:
        return admin_exports.busy(request)
    except admin_exports.TooMuch as refusal:
        return admin_refusals.page(request, _("The file is large"), str(refusal), status=422)
    return admin_exports.download(content, content_type, f"monthly-report-{month}.{name}")


def _spreadsheet(file_type: FileType, month: Month, reports: list[MerchantMonth]) -> tuple[str, bytes, int]:
    with tempfile.TemporaryFile() as file:
        header = [str(label) for label in monthly.HEADER]
        count = spreadsheets.write(file, file_type, header, monthly.table(month, reports))
        file.seek(0)
        return file_type.content_type, file.read(), count


def _pdf(month: Month, reports: list[MerchantMonth]) -> tuple[str, bytes, int]:
    """Raises TooMuch."""
    # Only here, because the library of documents is large.
    from console.reports import monthly_document
    from core import pdf

    try:
        content = monthly_document.write(month, reports, clock.now())
    except pdf.TooManyRows:
        message = _("The report is too long to print. Choose a merchant, or download CSV or Excel.")
        raise admin_exports.TooMuch(message) from None
    return pdf.CONTENT_TYPE, content, sum(len(report.lines) + 3 for report in reports)
