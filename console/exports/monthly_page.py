"""The page *Monthly report*, which offers the accountant's pack."""

from typing import Any
from urllib.parse import urlencode

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db import OperationalError, connection
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _
from psycopg.errors import QueryCanceled

from console.exports import monthly
from console.exports.monthly import MerchantMonth, Month
from core import clock, ids
from core.console.admin_exports import PERMISSION
from core.database.sessions import limit_statements
from merchants.models import Merchant

# A month of a large merchant is a million entries. Only a worker has more time.
STATEMENT_SECONDS = 5
OFFERED_MERCHANTS = 500


def view(site: admin.AdminSite, request: HttpRequest) -> HttpResponse:
    """Show the report of a month, and offer its files. Raises Http404 and PermissionDenied."""
    if not request.user.has_perm(PERMISSION):
        raise PermissionDenied
    today = clock.now().astimezone(clock.BANGKOK).date()
    merchant_id = request.GET.get("merchant", "")
    if merchant_id and not (
        ids.looks_right(merchant_id, "") and Merchant.objects.filter(pk=merchant_id).exists()
    ):
        raise Http404
    error, reports = "", None
    try:
        month = monthly.parse(request.GET.get("month", ""), today)
    except monthly.MonthError:
        month = monthly.parse("", today)
        error = _("Choose a month that has begun.")
    else:
        reports = _read(month, merchant_id)
    context: dict[str, Any] = site.each_context(request) | {
        "title": _("Monthly report"),
        "error": error,
        "reports": reports or [],
        "is_large": reports is None and not error,
        "asked": urlencode({"month": str(month), "merchant": merchant_id}),
        "month": month,
        "merchant_id": merchant_id,
        "today": today,
        "has_ended": month.end <= clock.now(),
        "merchants": Merchant.objects.order_by("name", "pk")[:OFFERED_MERCHANTS],
    }
    return TemplateResponse(request, "admin/monthly_report.html", context)


def _read(month: Month, merchant_id: str) -> list[MerchantMonth] | None:
    """None if it takes longer than STATEMENT_SECONDS."""
    try:
        with limit_statements(connection, STATEMENT_SECONDS):
            return monthly.read(month, merchant_id)
    except OperationalError as error:
        if isinstance(error.__cause__, QueryCanceled):
            return None
        raise
