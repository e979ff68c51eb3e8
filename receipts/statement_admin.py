"""Statement files in the console: import one, see how far it is and what became of its lines.

The import runs in the request that brings the file, and goes on if the browser hangs up: nothing has to be
kept for a worker, and whatever ends it, importing the file again goes on where it stopped.
"""

import logging
from collections.abc import Sequence
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

from core import clock, money, uploads
from core.admin import ReadOnlyAdmin
from core.logs import redact
from merchants.models import Merchant
from receipts.models import LineResult, Statement, StatementLine
from receipts.statements import importing, reading, turns
from receipts.statements.importing import Result, Summary
from receipts.statements.lines import NotAStatement

log = logging.getLogger("receipts")


class ImportForm(forms.Form):
    """A bank that serves somebody here, and its file."""

    bank = forms.ChoiceField()
    file = forms.FileField(help_text="A cross-bank bill payment file, or CSV with the names of its columns.")

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        names = Merchant.objects.exclude(bank="").order_by("bank").values_list("bank", flat=True).distinct()
        self.fields["bank"] = forms.ChoiceField(choices=[(name, name) for name in names])

    def clean_file(self) -> Any:
        file = self.cleaned_data["file"]
        if file.size > uploads.MAX_FILE:
            raise forms.ValidationError("Larger than 64 MB: import it by `manage.py import_statement`.")
        return file


class StatementAdmin(ReadOnlyAdmin):
    list_display = ["id", "name", "bank", "created_at", "imported_by", "progress", "is_in_order"]
    list_filter = ["bank"]
    search_fields = ["=id", "name", "=digest"]
    fields = [
        "id", "name", "bank", "digest", "imported_by", "request_id", "created_at", "ended_at", "progress",
        "results", "complaints",
    ]  # fmt: skip
    change_list_template = "admin/statements.html"
    change_form_template = "admin/statement.html"

    def get_urls(self) -> list[URLPattern]:
        page = self.admin_site.admin_view(self.import_page)
        urls: list[URLPattern] = super().get_urls()
        return [path("import/", page, name="receipts_statement_import"), *urls]

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        may_import = {"may_import": request.user.has_perm("receipts.import_statement")}
        return super().changelist_view(request, (extra_context or {}) | may_import)

    def import_page(self, request: HttpRequest) -> HttpResponse:
        if not request.user.has_perm("receipts.import_statement"):
            raise PermissionDenied
        form = ImportForm(request.POST or None, request.FILES or None)
        summary = self._import(request, form) if form.is_valid() else None
        if summary is not None:
            return redirect("admin:receipts_statement_change", summary.statement.id)
        context = {**self.admin_site.each_context(request), "form": form, "title": "Import a statement"}
        return TemplateResponse(request, "admin/statement_import.html", context)

    def _import(self, request: HttpRequest, form: ImportForm) -> Summary | None:
        """None: nothing was begun, and the form says why."""
        try:
            with turns.taken():
                return self._import_alone(request, form)
        except (NotAStatement, turns.Taken) as error:
            form.add_error("file", str(error))
            return None

    def _import_alone(self, request: HttpRequest, form: ImportForm) -> Summary:
        """Raises NotAStatement."""
        given = form.cleaned_data["file"]
        file = reading.open_file(given.file, given.name)
        statement, occurrences = importing.begin(
            file, bank=form.cleaned_data["bank"], by=request.user.get_username(), now=clock.now()
        )
        self.log_addition(request, statement, "imported")
        try:
            summary = importing.run(file, statement, occurrences, clock=clock.now, passed=_ignore)
        except DatabaseError as error:
            log.exception("statement %s was interrupted", statement.id)
            messages.error(
                request, f"{statement.name} was interrupted ({type(error).__name__}): import it again."
            )
            return Summary(statement)
        if summary.is_clean:
            messages.success(request, f"{statement.name}: {statement.total} lines are in.")
        else:
            messages.warning(request, f"{statement.name}: something is wrong with it, see below.")
        return summary

    @admin.display(description="lines")
    def progress(self, statement: Statement) -> str:
        if statement.ended_at:
            return f"{statement.total:,}"
        return f"{statement.done:,} of {statement.total:,}; if it stands still, import the file again"

    @admin.display(description="in order", boolean=True)
    def is_in_order(self, statement: Statement) -> bool | None:
        if not statement.ended_at:
            return None
        return not (statement.complaints or statement.lines.filter(result=LineResult.UNREADABLE).exists())

    @admin.display(description="results")
    def results(self, statement: Statement) -> SafeString:
        """How many lines of each result, each a link to them."""
        counted = statement.lines.values("result").annotate(count=Count("id")).order_by("result")
        lines = reverse("admin:receipts_statementline_changelist")
        of_it = f"{lines}?statement__id__exact={statement.id}&result__exact="
        rows = [(of_it + row["result"], f"{row['count']:,}", row["result"]) for row in counted]
        links = format_html_join("", '<li><a href="{}">{} {}</a></li>', rows)
        return format_html("<ul>{}<li>{} known before</li></ul>", links, f"{statement.known:,}")


class StatementLineAdmin(ReadOnlyAdmin):
    shows_personal_data = True
    list_display = ["number", "statement", "kind", "baht", "paid_at", "result", "why", "receipt"]
    list_filter = ["result", "kind", "bank"]
    list_select_related = ["statement", "receipt"]
    search_fields = ["=receipt__id", "=statement__id"]
    fields = [
        "statement", "number", "bank", "account", "day", "occurrence", "kind", "baht", "paid_at", "result",
        "why", "receipt", "text",
    ]  # fmt: skip
    indexed_filters = frozenset({"statement__id__exact"})

    @admin.display(description="amount")
    def baht(self, line: StatementLine) -> str:
        return "" if line.amount is None else money.display(line.amount)

    @admin.display(description="line")
    def text(self, line: StatementLine) -> str:
        return redact(reading.as_text(line.line))


def _ignore(results: Sequence[Result]) -> None:
    """The page reads what became of the lines from the database."""
