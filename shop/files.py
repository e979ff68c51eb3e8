"""Files of the lists and months of a shop. Requests write them, so they are short."""

import tempfile
from collections.abc import Callable
from functools import partial
from typing import IO, Any

from django.contrib import messages
from django.contrib.admin.exceptions import DisallowedModelAdminLookup
from django.contrib.admin.options import IncorrectLookupParameters
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.utils.translation import gettext as _

from audit_trail import recording
from console.exports import sources
from core import clock
from core.console import admin_exports, sites, spreadsheets
from core.console.spreadsheets import CSV, XLSX, FileType
from merchants import csv_lists
from merchants.errors import TooManyExports
from operations.data_protection import shop_fence
from operations.evidence import files as evidence_files, packs, pages as evidence_pages
from operations.evidence.errors import EvidenceNotReady

FILE_TYPES = {each.name: each for each in (CSV, XLSX)}
MONTH = "month"
EVIDENCE_TYPES = {each.name: each for each in (sources.JSON, sources.PDF)}


# Payments of which a file has evidence: two seconds, and six for a PDF.
MAX_EVIDENCE = {sources.JSON.name: 1_000, sources.PDF.name: 20}


class TooLong(Exception):
    """The list has more rows than a file may have, or older ones that its filters do not read."""


def of_list(request: Any) -> HttpResponse:
    """What the filters of a list find. Raises Http404 and PermissionDenied."""
    pages = {model._meta.label_lower: page for model, page in sites.site_of(request)._registry.items()}
    is_evidence = request.POST.get("list") == sources.EVIDENCE
    page = pages.get("payments.payment" if is_evidence else request.POST.get("list"))
    file_types = EVIDENCE_TYPES if is_evidence else FILE_TYPES
    file_type = file_types.get(request.POST.get("file_type"))
    if page is None or file_type is None or not page.export_columns:
        raise Http404
    permission = evidence_pages.PERMISSION if is_evidence else admin_exports.PERMISSION
    if not (request.user.has_perm(permission) and page.has_view_permission(request)):
        raise PermissionDenied
    request.GET = QueryDict(request.POST.get("query", ""))
    query, columns = request.GET.urlencode(), admin_exports.columns_of(page)
    header = [name for column in columns for name in column.headers]
    max_rows = MAX_EVIDENCE[file_type.name] if is_evidence else csv_lists.MAX_ROWS
    try:
        with csv_lists.slot(request.membership.merchant_id):
            if is_evidence:
                found = [row.pk for row in _rows(page, request, max_rows)]
                return respond(request, "evidence", query, file_type, partial(_evidence, found, file_type))
            lines = list(admin_exports.cells(_rows(page, request, max_rows), columns))
            return respond(
                request,
                page.opts.model_name,
                query,
                file_type,
                lambda file: spreadsheets.write(file, file_type, header, lines),
            )
    except (EvidenceNotReady, TooManyExports) as refusal:
        messages.warning(request, refusal.translated)
    except TooLong:
        text = _("A file has at most %(count)s rows. Choose fewer days, and download several files.")
        messages.warning(request, text % {"count": f"{max_rows:,}"})
    changelist = f"admin:{page.opts.app_label}_{page.opts.model_name}_changelist"
    return HttpResponseRedirect(f"{reverse(changelist)}?{query}")


def _evidence(payment_ids: list[str], file_type: FileType, file: IO[bytes]) -> int:
    """The number of payments. Raises EvidenceNotReady."""
    pack = packs.check(packs.pack(payment_ids))
    file.write(evidence_files.write(pack, file_type.name))
    return len(pack["payments"])


def _rows(page: Any, request: Any, max_rows: int) -> list[Any]:
    """Raises TooLong, and Http404 for filters that the list does not have."""
    with shop_fence.reading_for(request.membership.merchant_id):
        try:
            changes = page.get_changelist_instance(request)
        except (IncorrectLookupParameters, DisallowedModelAdminLookup):
            raise Http404 from None
        rows = list(changes.queryset[: max_rows + 1])
    if changes.is_limited or len(rows) > max_rows:
        raise TooLong
    return rows


def respond(
    request: Any, name: str, period: str, file_type: FileType, write: Callable[[IO[bytes]], int]
) -> HttpResponse:
    with tempfile.TemporaryFile() as file:
        rows = write(file)
        file.seek(0)
        answer = HttpResponse(file.read(), content_type=file_type.content_type)
    of = period if name == MONTH else clock.now().astimezone(clock.BANGKOK).date()
    answer.headers["Content-Disposition"] = f'attachment; filename="{name}-{of}.{file_type.name}"'
    details = {"list": name, "file": file_type.name, "rows": rows, "filter": period}
    recording.exported("merchants.merchant", details, request.membership.merchant_id)
    return answer
