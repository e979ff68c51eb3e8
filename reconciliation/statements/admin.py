"""Statement files in the console: the import, its progress and its results.

The import runs in the request of the upload and continues if the browser disconnects. No worker needs the
file. After an interruption, staff import the file again.
"""

import logging
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.db import DatabaseError
from django.db.models import Count
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from core import clock, personal_data, uploads
from core.admin import ReadOnlyAdmin
from core.logs import redact
from merchants.models import Merchant
from reconciliation.models import LineResult, Statement, StatementLine
from reconciliation.statements import importing, statement_file
from reconciliation.statements.importing import ImportAlreadyRunning, ImportSummary
from reconciliation.statements.lines import InvalidStatementFile

log = logging.getLogger("reconciliation")


class StatementImportForm(forms.Form):
    bank = forms.ChoiceField()
    file = forms.FileField(help_text=_("A cross-bank bill payment file, or a CSV file with a header line."))

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        names = Merchant.objects.exclude(bank="").order_by("bank").values_list("bank", flat=True).distinct()
        self.fields["bank"] = forms.ChoiceField(choices=[(name, name) for name in names])

    def clean_file(self) -> Any:
        file = self.cleaned_data["file"]
        if file.size > uploads.MAX_FILE:
            raise forms.ValidationError(_("Larger than 64 MB: import it by `manage.py import_statement`."))
        return file


class StatementAdmin(ReadOnlyAdmin):
    list_display = ["id", "file_name", "bank", "created_at", "actor", "progress", "has_no_errors"]
    list_filter = ["bank"]
    search_fields = ["=id", "file_name", "=file_sha256"]
    fields = [
        "id", "file_name", "bank", "file_sha256", "actor", "request_id", "created_at", "completed_at",
        "progress", "results", "problems",
    ]  # fmt: skip

    def get_urls(self) -> list[URLPattern]:
        page = self.admin_site.admin_view(self.import_page)
        urls: list[URLPattern] = super().get_urls()
        return [path("import/", page, name="reconciliation_statement_import"), *urls]

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        may_import = {"may_import": request.user.has_perm("reconciliation.import_statement")}
        return super().changelist_view(request, (extra_context or {}) | may_import)

    def import_page(self, request: HttpRequest) -> HttpResponse:
        if not request.user.has_perm("reconciliation.import_statement"):
            raise PermissionDenied
        form = StatementImportForm(request.POST or None, request.FILES or None)
        summary = self._import(request, form) if form.is_valid() else None
        if summary is not None:
            return redirect("admin:reconciliation_statement_change", summary.statement.id)
        context = {**self.admin_site.each_context(request), "form": form, "title": _("Import a statement")}
        return TemplateResponse(request, "admin/reconciliation/import_statement.html", context)

    def _import(self, request: HttpRequest, form: StatementImportForm) -> ImportSummary | None:
        """Return None if the file was refused. The form shows the reason."""
        try:
            with importing.console_import_lock():
                return self._run_import(request, form)
        except (InvalidStatementFile, ImportAlreadyRunning) as error:
            form.add_error("file", str(error))
            return None

    def _run_import(self, request: HttpRequest, form: StatementImportForm) -> ImportSummary:
        """Raises InvalidStatementFile."""
        upload = form.cleaned_data["file"]
        file = statement_file.open_file(upload.file, upload.name)
        statement, occurrences = importing.begin(file, bank=form.cleaned_data["bank"], now=clock.now())
        try:
            summary = importing.run(file, statement, occurrences, clock=clock.now)
        except DatabaseError as error:
            log.exception("statement %s was interrupted", statement.id)
            messages.error(
                request,
                gettext("%(file)s was interrupted (%(error)s): import it again.")
                % {"file": statement.file_name, "error": type(error).__name__},
            )
            return ImportSummary(statement)
        if summary.is_clean:
            text = gettext("%(file)s: %(count)s lines imported.")
            messages.success(request, text % {"file": statement.file_name, "count": statement.line_count})
        else:
            text = gettext("%(file)s has problems, see below.")
            messages.warning(request, text % {"file": statement.file_name})
        return summary

    @admin.display(description=_("lines"))
    def progress(self, statement: Statement) -> str:
        if statement.completed_at:
            return f"{statement.line_count:,}"
        text = gettext("%(stored)s of %(count)s; if it stops, import the file again")
        return text % {"stored": f"{statement.stored_count:,}", "count": f"{statement.line_count:,}"}

    @admin.display(description=_("no errors"), boolean=True)
    def has_no_errors(self, statement: Statement) -> bool | None:
        if not statement.completed_at:
            return None
        return not (statement.problems or statement.lines.filter(result=LineResult.UNREADABLE).exists())

    @admin.display(description=_("results"))
    def results(self, statement: Statement) -> SafeString:
        """The number of lines of each result, each a link to these lines."""
        counts = statement.lines.values("result").annotate(count=Count("id")).order_by("result")
        lines = reverse("admin:reconciliation_statementline_changelist")
        filter_url = f"{lines}?statement__id__exact={statement.id}&result__exact="
        rows = [(filter_url + row["result"], f"{row['count']:,}", row["result"]) for row in counts]
        links = format_html_join("", '<li><a href="{}">{} {}</a></li>', rows)
        return format_html("<ul>{}<li>{} imported before</li></ul>", links, f"{statement.duplicate_count:,}")


class StatementLineAdmin(ReadOnlyAdmin):
    shows_personal_data = True
    list_display = [
        "line_number",
        "statement",
        "kind",
        "baht",
        "paid_at",
        "result",
        "error",
        "movement",
    ]
    list_filter = ["result", "kind", "bank"]
    list_select_related = ["statement", "movement"]
    search_fields = ["=movement__id", "=statement__id"]
    fields = [
        "statement", "line_number", "bank", "biller_id", "bank_date", "occurrence", "kind", "baht",
        "paid_at", "result", "error", "movement", "text",
    ]  # fmt: skip
    indexed_filters = frozenset({"statement__id__exact"})

    @admin.display(description=_("line"))
    def text(self, line: StatementLine) -> str:
        return personal_data.message(redact(statement_file.decode_line(line.line)))
