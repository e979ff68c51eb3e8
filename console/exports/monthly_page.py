"""The page *Monthly report*, which offers the accountant's pack."""

from urllib.parse import urlencode

from django.contrib.auth.decorators import permission_required
from django.db import OperationalError, connection
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404
from django.utils.translation import gettext as _
from psycopg.errors import QueryCanceled

from console.exports import monthly
from console.exports.monthly import MerchantMonth, Month
from core import clock, ids
from core.console import sites
from core.console.admin_exports import PERMISSION
from core.console.admin_lists import MODE
from core.database.sessions import limit_statements
from merchants import modes
from merchants.models import Merchant, Mode

# A month of a large merchant is a million entries. Only a worker has more time.
STATEMENT_SECONDS = 5
OFFERED_MERCHANTS = 500


@permission_required(PERMISSION, raise_exception=True)
def view(request: HttpRequest) -> HttpResponse:
    """Show the report of a month, and offer its files. Raises Http404."""
    today = clock.now().astimezone(clock.BANGKOK).date()
    merchant_id = request.GET.get("merchant", "")
    if merchant_id:
        if not ids.looks_right(merchant_id, ""):
            raise Http404
        modes.follow(request, get_object_or_404(Merchant, pk=merchant_id).mode)
    mode = modes.chosen(request)
    month, error = monthly.chosen(request, today)
    reports = [] if error else _read(month, merchant_id, mode)
    return sites.page(
        request,
        "admin/monthly_report.html",
        _("Monthly report"),
        error=error,
        reports=reports or [],
        is_large=reports is None,
        asked=urlencode({"month": str(month), "merchant": merchant_id, MODE: mode}),
        month=month,
        merchant_id=merchant_id,
        today=today,
        has_ended=month.end <= clock.now(),
        merchants=Merchant.objects.filter(mode=mode).order_by("name", "pk")[:OFFERED_MERCHANTS],
    )


def _read(month: Month, merchant_id: str, mode: Mode) -> list[MerchantMonth] | None:
    """None if it takes longer than STATEMENT_SECONDS."""
    try:
        with limit_statements(connection, STATEMENT_SECONDS):
            return [each for each in monthly.read(month, merchant_id) if each.merchant.mode == mode]
    except OperationalError as error:
        if isinstance(error.__cause__, QueryCanceled):
            return None
        raise
