import json
from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from audit_trail import recording
from audit_trail.pages import ReadOnlyAdmin
from core.console import admin_columns, admin_refusals
from core.database import rows
from operations.models import DailyClose, Heartbeat, JobResult, JobRun


@admin.register(Heartbeat)
class HeartbeatAdmin(ReadOnlyAdmin):
    list_display = ["name", "recorded_at"]


class ShownRuns(admin.SimpleListFilter):
    """Shows the newest run of each job by default."""

    title, parameter_name = _("runs"), "runs"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        return [("all", gettext("All"))]

    def choices(self, changelist: Any) -> Any:
        newest, *others = super().choices(changelist)
        return [newest | {"display": gettext("The newest of each job")}, *others]

    def queryset(self, request: Any, queryset: Any) -> Any:
        return queryset if self.value() == "all" else queryset.newest_of_each_job()


class ResultFilter(admin.SimpleListFilter):
    title, parameter_name = _("result"), "result"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        return [(each.value, str(each.label)) for each in JobResult]

    def queryset(self, request: Any, queryset: Any) -> Any:
        value = self.value()
        return queryset.with_result(JobResult(value)) if value in JobResult.values else queryset


RUN = ["duration", "differences", "error"]


@admin.register(JobRun)
class JobRunAdmin(ReadOnlyAdmin):
    """When each nightly job ran last, how long it took, and how it ended."""

    list_display = ["job", "result", "started_at", *RUN, "cause"]
    list_filter = [ShownRuns, "job", ResultFilter]
    ordering = ["-started_at", "-pk"]
    fields = ["job", "result", "cause", "attempts", "started_at", "ended_at", *RUN]
    export_columns = ["id", "job", "day", "started_at", "ended_at", "seconds", "differences", "error"]

    @admin.display(description=_("result"))
    def result(self, run: JobRun) -> str:
        result = run.result
        tone = "failed" if result == JobResult.DIFFERENCES else result.value
        return admin_columns.badge(tone, result.label)

    @admin.display(description=_("duration"))
    def duration(self, run: JobRun) -> str | None:
        if run.seconds is None:
            return None
        return gettext("%(seconds)s s") % {"seconds": f"{run.seconds:,.1f}"}

    @admin.display(description=_("started by"))
    def cause(self, run: JobRun) -> str:
        return gettext("The clock") if run.day else gettext("A command")


# One print of a person at a time, in all processes: it takes seconds.
LOCK_PRINT = "SELECT pg_try_advisory_xact_lock(hashtextextended('print:' || %s, 0))"


@admin.register(DailyClose)
class DailyCloseAdmin(ReadOnlyAdmin):
    """The closes of days, with the signed file of each."""

    list_display = ["day", "number", "hash", "file"]
    fields = ["day", "number", "hash", "previous_hash", "signature", "public_key", "file", "body"]

    def get_urls(self) -> list[URLPattern]:
        urls: list[URLPattern] = super().get_urls()
        json_file = self.admin_site.admin_view(self.download_view)
        print_file = self.admin_site.admin_view(self.print_view)
        return [
            path("<str:object_id>/download/", json_file, name="operations_dailyclose_download"),
            path("<str:object_id>/print/", print_file, name="operations_dailyclose_print"),
            *urls,
        ]

    def download_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """The signed text and its signature. `daily_close --check` verifies this file."""
        close = self._close(request, object_id)
        given = {"body": close.body, "signature": close.signature, "public_key": close.public_key}
        return _download(close, "json", "application/json", json.dumps(given).encode())

    def print_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """The close as PDF. It shows how the signed file is verified."""
        # Only here, because the library of documents is large.
        from core.drawing import pdf
        from operations.audit.daily_close import document

        close = self._close(request, object_id)
        with transaction.atomic():
            (is_free,) = rows.run(LOCK_PRINT, [request.user.get_username()]).fetchone()
            if not is_free:
                message = gettext("Your last document is still being made. Wait until it is done.")
                return admin_refusals.page(request, gettext("Not now"), message, status=429)
            return _download(close, "pdf", pdf.CONTENT_TYPE, document.write(close))

    def _close(self, request: HttpRequest, object_id: str) -> DailyClose:
        """Raises PermissionDenied and Http404."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        close: DailyClose | None = self.get_object(request, unquote(object_id))
        if close is None:
            raise Http404
        return close

    @admin.display(description=_("signed file"))
    def file(self, close: Any) -> str:
        return format_html(
            '<a href="{}">JSON</a> <a href="{}">PDF</a>',
            reverse("admin:operations_dailyclose_download", args=[close.pk]),
            reverse("admin:operations_dailyclose_print", args=[close.pk]),
        )


def _download(close: DailyClose, file: str, content_type: str, content: bytes) -> HttpResponse:
    """The file as a download, with its audit record."""
    details = {"day": close.day, "file": file}
    recording.exported(close._meta.label_lower, details, str(close.pk))
    headers = {"Content-Disposition": f'attachment; filename="daily-close-{close.day}.{file}"'}
    return HttpResponse(content, content_type=content_type, headers=headers)
