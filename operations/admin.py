import json
from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.translation import gettext, gettext_lazy as _

from audit_trail import recording
from audit_trail.act_pages import ActPages
from audit_trail.pages import ReadOnlyAdmin
from core import clock
from core.console import admin_columns, sites
from core.database import rows
from operations.audit.daily_close import closing, signing
from operations.audit.month_close import month_page
from operations.audit.month_close.acts import MONTH_ACTS
from operations.models import DailyClose, Heartbeat, JobResult, JobRun, MonthClose


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


class SignedCloseAdmin(ReadOnlyAdmin):
    """Closes, with the signed file of each and the same to print."""

    file_name, period = "", ""
    fields = ["number", "hash", "previous_hash", "signature", "public_key", "file", "body"]

    def get_urls(self) -> list[URLPattern]:
        page, guard = f"{self.opts.app_label}_{self.opts.model_name}", self.admin_site.admin_view
        views = {"download": self.download_view, "print": self.print_view}.items()
        own = [path(f"<str:object_id>/{name}/", guard(view), name=f"{page}_{name}") for name, view in views]
        return [*own, *super().get_urls()]

    def write(self, close: Any) -> bytes:
        """The close as PDF. The library of documents is large, so it is imported only here."""
        raise NotImplementedError

    def download_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """The signed text and its signature. `daily_close --check` verifies this file."""
        close = self._close(request, object_id)
        given = {"body": close.body, "signature": close.signature, "public_key": close.public_key}
        return self._download(close, "json", "application/json", json.dumps(given).encode())

    def print_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """The close as PDF. It shows how the signed file is verified."""
        close = self._close(request, object_id)
        with transaction.atomic():
            (is_free,) = rows.run(LOCK_PRINT, [request.user.get_username()]).fetchone()
            if not is_free:
                message = gettext("Your last document is still being made. Wait until it is done.")
                return sites.refusal(request, gettext("Not now"), message, status=429)
            return self._download(close, "pdf", "application/pdf", self.write(close))

    def _close(self, request: HttpRequest, object_id: str) -> Any:
        """Raises PermissionDenied and Http404."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        close = self.get_object(request, unquote(object_id))
        if close is None:
            raise Http404
        return close

    def _download(self, close: Any, file: str, content_type: str, content: bytes) -> HttpResponse:
        details = {self.period: getattr(close, self.period), "file": file}
        recording.exported(close._meta.label_lower, details, str(close.pk))
        headers = {"Content-Disposition": f'attachment; filename="{self.file_name}-{close}.{file}"'}
        return HttpResponse(content, content_type=content_type, headers=headers)

    @admin.display(description=_("signed file"))
    def file(self, close: Any) -> str:
        page = f"admin:{self.opts.app_label}_{self.opts.model_name}"
        urls = [reverse(f"{page}_{name}", args=[close.pk]) for name in ("download", "print")]
        return format_html('<a href="{}">JSON</a> <a href="{}">PDF</a>', *urls)


@admin.register(DailyClose)
class DailyCloseAdmin(SignedCloseAdmin):
    file_name, period = "daily-close", "day"
    list_display = ["day", "number", "hash", "file"]
    fields = ["day", *SignedCloseAdmin.fields]

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        if self.has_view_permission(request) and closing.lacks_key(clock.now()):
            messages.warning(request, gettext("No day is closed.") + f" {signing.MISSING}")
        return super().changelist_view(request, extra_context)

    def write(self, close: DailyClose) -> bytes:
        from operations.audit.daily_close import document

        return document.write(close)


@admin.register(MonthClose)
class MonthCloseAdmin(ActPages, SignedCloseAdmin):
    """The closed months, and above them what the next one still needs."""

    file_name, period = "month-close", "month"
    list_display = ["month_text", "number", "hash", "file"]
    fields = ["month_text", *SignedCloseAdmin.fields]
    list_acts = MONTH_ACTS

    def write(self, close: MonthClose) -> bytes:
        from operations.audit.month_close import document

        return document.write(close)

    @admin.display(description=_("month"), ordering="month")
    def month_text(self, close: MonthClose) -> str:
        return str(close)

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        shown = {"due": month_page.due(clock.now())} if self.has_view_permission(request) else {}
        page: HttpResponse = super().changelist_view(request, shown | (extra_context or {}))
        return page

    def page_context(self, request: HttpRequest, row: MonthClose) -> dict[str, Any]:
        return {"shown": month_page.shown(json.loads(row.body))}
