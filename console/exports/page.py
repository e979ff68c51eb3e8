"""The page *Exports*: files that workers write for the person who looks at it."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import permission_required
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.utils import translation
from django.utils.translation import gettext as _

from console.exports import jobs, sources
from console.exports.sources import Source
from console.models import Export, ExportFailure
from core import clock
from core.console import personal_data, sites
from core.console.admin_exports import PERMISSION
from core.work.background_jobs import JobState

MAX_SHOWN = 50
ASKED = "asked_export"


@permission_required(PERMISSION, raise_exception=True)
def view(request: HttpRequest) -> HttpResponse:
    """Show the exports of this person; a POST asks for another one. Raises PermissionDenied and Http404."""
    if request.method == "POST":
        return _ask(request)
    mine = Export.objects.filter(owner_id=request.user.pk).order_by("-pk")[:MAX_SHOWN]
    exports = [_shown(request, export) for export in mine]
    is_open = any(export.is_open for export, _name, _note in exports)
    asked = None if is_open else request.session.pop(ASKED, None)
    # Its download begins by itself, once.
    ready = next((export for export, _name, note in exports if export.pk == asked and not note), None)
    title = _("Exports")
    return sites.page(request, "admin/exports.html", title, exports=exports, is_open=is_open, ready=ready)


def _ask(request: HttpRequest) -> HttpResponse:
    user: Any = request.user
    label, file_type = request.POST.get("list", ""), request.POST.get("file_type", "")
    source = sources.of(label)
    if source is None or file_type not in {each.name for each in source.file_types}:
        raise Http404
    if not source.may_read(request):
        raise PermissionDenied
    query = request.POST.get("query", "").replace("\0", "")
    language = request.POST.get("language", "")
    known = language if language in dict(settings.LANGUAGES) else translation.get_language()
    try:
        with translation.override(known):
            asked = jobs.ask(user, list=label, query=query, file_type=file_type, now=clock.now())
    except jobs.AlreadyOpen:
        messages.warning(request, _("Your last export still runs. Wait until it has ended."))
    else:
        request.session[ASKED] = asked.pk
    return HttpResponseRedirect(reverse("admin:exports"))


@permission_required(PERMISSION, raise_exception=True)
def download(request: HttpRequest, number: int) -> HttpResponse:
    """The file, for its owner only. Raises PermissionDenied and Http404."""
    mine = Export.objects.filter(owner_id=request.user.pk, state=JobState.DONE)
    export = mine.filter(pk=number).first()
    source = sources.of(export.list) if export else None
    if export is None or source is None:
        raise Http404
    if _refusal(request, export, source):
        raise PermissionDenied
    if export.has_personal_data:
        jobs.record_personal_data(source)
    file_type = sources.FILE_TYPES[export.file_type]
    parts = export.parts.order_by("number").values_list("content", flat=True)
    response = HttpResponse(b"".join(map(bytes, parts)), content_type=file_type.content_type)
    if file_type.is_text:  # it is stored compressed, and browsers unpack it
        response.headers["Content-Encoding"] = "gzip"
    asked_on = export.created_at.astimezone(clock.BANGKOK).date()
    name = f"{source.file_name}-{source.period(QueryDict(export.query), asked_on)}.{file_type.name}"
    response.headers["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


def _shown(request: HttpRequest, export: Export) -> tuple[Export, str, str]:
    """The export, the name of its list, and why there is no file for this person now, or an empty text."""
    source = sources.of(export.list)
    if source is None:
        return export, export.list, _("This list is no longer there.")
    if export.state == JobState.WAITING:
        before = jobs.QUEUE.open_jobs().filter(pk__lt=export.pk).count()
        waits = _("It waits for the files of others: %(count)s.") % {"count": before}
        is_next = before < jobs.QUEUE.max_running
        return export, source.name, _("A worker begins in a moment.") if is_next else waits
    if export.state == JobState.RUNNING:
        return export, source.name, _("A worker writes the file.")
    if export.state == JobState.FAILED:
        return export, source.name, str(ExportFailure(export.failure).label)
    return export, source.name, _refusal(request, export, source)


def _refusal(request: HttpRequest, export: Export, source: Source) -> str:
    """Why this person may not fetch the file now, or an empty text."""
    if not source.may_read(request):
        return _("You may no longer see this list.")
    if export.has_personal_data and personal_data.is_hidden():
        return _("The file has names and accounts of customers, which you may no longer see.")
    return ""
