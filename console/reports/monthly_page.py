"""The page *Monthly report*, and its files."""

import tempfile
from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db import connection, transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _

from console.reports import monthly
from console.reports.monthly import MerchantMonth, Month
from core import clock, ids, spreadsheets, staff_acts
from core.admin_exports import PERMISSION, answer
from core.postgres.sessions import limit_statements
from merchants.models import Merchant

# A month of a large merchant is a million entries.
STATEMENT_SECONDS = 25
OFFERED_MERCHANTS = 500


def view(site: admin.AdminSite, request: HttpRequest) -> HttpResponse:
    """Show the report of a month, or answer with its file. Raises Http404 and PermissionDenied."""
    if not request.user.has_perm(PERMISSION):
        raise PermissionDenied
    today = clock.now().astimezone(clock.BANGKOK).date()
    merchant_id = request.GET.get("merchant", "")
    if merchant_id and not _is_known(merchant_id):
        raise Http404
    context: dict[str, Any] = {"error": "", "reports": [], "merchant_id": merchant_id, "today": today}
    try:
        month = monthly.parse(request.GET.get("month", ""), today)
    except monthly.MonthError:
        month = monthly.parse("", today)
        context["error"] = _("Choose a month that has begun.")
    else:
        with limit_statements(connection, STATEMENT_SECONDS):
            context["reports"] = monthly.read(month, merchant_id)
        if (name := request.GET.get("file")) is not None:
            return _file(name, month, merchant_id, context["reports"])
    context |= site.each_context(request) | {
        "title": _("Monthly report"),
        "month": month,
        "has_ended": month.end <= clock.now(),
        "merchants": Merchant.objects.order_by("name", "pk")[:OFFERED_MERCHANTS],
    }
    return TemplateResponse(request, "admin/monthly_report.html", context)


def _is_known(merchant_id: str) -> bool:
    return ids.looks_right(merchant_id, "") and Merchant.objects.filter(pk=merchant_id).exists()


def _file(name: str, month: Month, merchant_id: str, reports: list[MerchantMonth]) -> HttpResponse:
    file_type = spreadsheets.FILE_TYPES.get(name)
    if file_type is None:
        raise Http404
    with tempfile.TemporaryFile() as file, transaction.atomic():
        header = [str(label) for label in monthly.HEADER]
        count = spreadsheets.write(file, file_type, header, monthly.table(month, reports))
        details = {"month": str(month), "merchant": merchant_id, "file": file_type.name, "rows": count}
        staff_acts.recorder().exported("ledger.entry", details)
        return answer(file, file_type, f"monthly-report-{month}.{file_type.name}")
