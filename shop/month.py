"""The month of a shop, and its files for the accountant: those of the console, of one merchant.

The request writes the file, so a month has at most MAX_ENTRIES. For a larger one, the operator has workers.
"""

from typing import IO, Any

from django.contrib.auth.decorators import permission_required
from django.http import Http404, HttpResponse
from django.utils.translation import gettext as _

from console.exports import monthly, pack
from console.exports.monthly import MerchantMonth, Month
from core import clock
from core.console import sites, spreadsheets
from core.console.spreadsheets import XLSX, ZIP
from operations.data_protection import shop_fence
from shop import files

SEE = "shop.view_month"
MAX_ENTRIES = 20_000
FILE_TYPES = {each.name: each for each in (XLSX, ZIP)}


@permission_required(SEE, raise_exception=True)
def page(request: Any) -> HttpResponse:
    """Show the report of a month, or download its tables."""
    now, merchant_id = clock.now(), request.membership.merchant_id
    today = now.astimezone(clock.BANGKOK).date()
    month, error = monthly.chosen(request, today)
    with shop_fence.lifted():  # each statement names the merchant
        (report,) = monthly.read(month, merchant_id, until=month.until(now))
        is_large = sum(line.count for line in report.lines) > MAX_ENTRIES
        if "file" in request.GET and not error and not is_large:
            return _file(request, report, month)
    return sites.page(
        request,
        "shop/month.html",
        _("Month"),
        error=error,
        report=report,
        month=month,
        today=today,
        has_ended=month.end <= now,
        is_large=is_large,
        file_types=FILE_TYPES,
    )


def _file(request: Any, report: MerchantMonth, month: Month) -> HttpResponse:
    """The tables. Raises Http404 for another type of file."""
    file_type = FILE_TYPES.get(request.GET["file"])
    if file_type is None:
        raise Http404
    tables, is_buddhist = pack.sheets(report, month, clock.now()), monthly.is_buddhist()

    def write(file: IO[bytes]) -> int:
        return spreadsheets.write_sheets(file, file_type, tables, is_buddhist=is_buddhist)

    return files.respond(request, files.MONTH, str(month), file_type, write)
