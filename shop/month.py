"""The month of a shop, and its files for the accountant: those of the console, of one merchant.

The request writes the file, so a month has at most MAX_ENTRIES. For a larger one, the operator has workers.
"""

import tempfile
from typing import Any

from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _

from audit_trail import recording
from console.exports import monthly, pack
from console.exports.monthly import MerchantMonth, Month
from core import clock
from core.console import spreadsheets
from core.console.spreadsheets import XLSX, ZIP
from operations.data_protection import shop_fence

SEE = "shop.view_month"
MAX_ENTRIES = 20_000
FILE_TYPES = {each.name: each for each in (XLSX, ZIP)}


def page(site: Any, request: Any) -> HttpResponse:
    """Show the report of a month, or download its tables."""
    if not request.user.has_perm(SEE):
        raise PermissionDenied
    now, merchant_id = clock.now(), request.membership.merchant_id
    today = now.astimezone(clock.BANGKOK).date()
    try:
        month, error = monthly.parse(request.GET.get("month", ""), today), ""
    except monthly.MonthError:
        month, error = monthly.parse("", today), _("Choose a month that has begun.")
    with shop_fence.lifted():  # each statement names the merchant
        (report,) = monthly.read(month, merchant_id, until=month.until(now))
        is_large = sum(line.count for line in report.lines) > MAX_ENTRIES
        if "file" in request.GET and not error and not is_large:
            return _file(request, report, month)
    context = site.each_context(request) | {
        "title": _("Month"),
        "error": error,
        "report": report,
        "month": month,
        "today": today,
        "has_ended": month.end <= now,
        "is_large": is_large,
        "file_types": FILE_TYPES,
    }
    return TemplateResponse(request, "shop/month.html", context)


def _file(request: Any, report: MerchantMonth, month: Month) -> HttpResponse:
    """The tables, recorded as an export. Raises Http404 for another type of file."""
    file_type = FILE_TYPES.get(request.GET["file"])
    if file_type is None:
        raise Http404
    with tempfile.TemporaryFile() as file:
        tables = pack.sheets(report, month, clock.now())
        rows = spreadsheets.write_sheets(file, file_type, tables, is_buddhist=monthly.is_buddhist())
        file.seek(0)
        answer = HttpResponse(file.read(), content_type=file_type.content_type)
    answer.headers["Content-Disposition"] = f'attachment; filename="month-{month}.{file_type.name}"'
    details = {"list": "month", "file": file_type.name, "rows": rows, "filter": str(month)}
    recording.exported("merchants.merchant", details, report.merchant.pk)
    return answer
