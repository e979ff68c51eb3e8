"""Statement files in the console: the upload, the progress of its import and the results."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.translation import gettext, gettext_lazy as _

from audit_trail.act_pages import ActingAdmin, ObjectAct, Told
from audit_trail.acts import Act, ActRefused
from audit_trail.pages import ReadOnlyAdmin
from core import clock
from core.console import personal_data
from core.console.admin_columns import column
from core.http import uploads
from core.observing.logs import redact
from core.work.background_jobs import JobState
from merchants.models import Merchant
from reconciliation.models import LineResult, Statement, StatementImport
from reconciliation.statements import import_jobs, importing, reasons, statement_file, table_format, undo
from reconciliation.statements.lines import InvalidStatementFile, ReaderBusy

PAGE = "admin:reconciliation_statement_change"
IMPORT_PAGE = "admin:reconciliation_statement_import"
IMPORT_PERMISSION = "reconciliation.import_statement"


def _bank_choices() -> list[tuple[str, str]]:
    return [(name, name) for name in sorted(Merchant.objects.banks())]


class StatementImportForm(forms.Form):
    bank = forms.ChoiceField(label=_("Bank"), choices=_bank_choices)
    file = forms.FileField(
        label=_("File"),
        help_text=_("A cross-bank bill payment file, an Excel file (.xlsx) or a CSV file, up to 64 MB."),
    )

    def clean_file(self) -> Any:
        file = self.cleaned_data["file"]
        if file.size > uploads.MAX_FILE:
            raise forms.ValidationError(_("Larger than 64 MB: import it by `manage.py import_statement`."))
        return file


UNDO = ObjectAct(
    "undo", _("Undo the import"), Act.STATEMENT_UNDONE, IMPORT_PERMISSION,
    undo.explain,
    lambda statement, values, now: Told(
        undo.undo(statement.pk, note=values["reason"], now=now), is_good=True
    ),
    is_possible=lambda statement, now: statement.completed_at is not None and statement.undone_at is None,
    is_recorded_by_service=True, is_dangerous=True,
)  # fmt: skip


class StatementAdmin(ActingAdmin):
    object_acts = (UNDO,)
    mode_column = "bank"
    list_display = ["id", "file_name", "bank", "created_at", "actor", "progress", "has_no_errors"]
    list_filter = ["bank"]
    search_fields = ["=id", "file_name", "=file_sha256"]
    fields = [
        "file_name", "bank", "progress", "created_at", "completed_at", "undone_at", "id", "file_sha256",
        "actor", "request_id",
    ]  # fmt: skip
    list_select_related = ["background_import"]

    def get_urls(self) -> list[URLPattern]:
        view, begin = self.admin_site.admin_view, "import/<str:upload_id>/"
        return [
            path("import/", view(self.import_page), name="reconciliation_statement_import"),
            path(begin, view(self.begin_page), name="reconciliation_statement_begin"),
            *super().get_urls(),
        ]

    def import_page(self, request: HttpRequest) -> HttpResponse:
        """The form of the upload. A file that can be imported is shown as it was understood."""
        if not request.user.has_perm(IMPORT_PERMISSION):
            raise PermissionDenied
        form = StatementImportForm(request.POST or None, request.FILES or None)
        context = {"form": form, "columns": table_format.COLUMNS, "title": _("Import a statement")}
        template = "import_statement"
        if form.is_valid() and (uploaded := _upload(form)) is not None:
            context = {**uploaded, "most": importing.MAX_TRIED, "title": _("Check before the import")}
            template = "statement_preview"
            self.record_view(uploaded["upload"].pk)
        all_context = {**self.admin_site.each_context(request), **context}
        return TemplateResponse(request, f"admin/reconciliation/{template}.html", all_context)

    def begin_page(self, request: HttpRequest, upload_id: str) -> HttpResponse:
        """Begin the import of a file that this person has uploaded and seen."""
        if not request.user.has_perm(IMPORT_PERMISSION):
            raise PermissionDenied
        if request.method != "POST":
            return redirect(IMPORT_PAGE)
        try:
            return redirect(PAGE, import_jobs.begin(upload_id, now=clock.now()).pk)
        except import_jobs.SameFileOpen as known:
            messages.info(request, _("This file is being imported already."))
            return redirect(PAGE, known.statement.pk)
        except ActRefused as refusal:
            messages.error(request, str(refusal))
        return redirect(IMPORT_PAGE)

    @admin.display(description=_("lines"))
    def progress(self, statement: Statement) -> str:
        if statement.undone_at:
            return gettext("undone")
        if statement.completed_at:
            return f"{statement.line_count:,}"
        counts = {"stored": f"{statement.stored_count:,}", "count": f"{statement.line_count:,}"}
        job: StatementImport | None = getattr(statement, "background_import", None)
        if job is None:  # a command imports it
            return gettext("%(stored)s of %(count)s; if it stops, import the file again") % counts
        if job.state == JobState.FAILED:
            return gettext("%(stored)s of %(count)s: it failed, import the file again") % counts
        return format_html(
            '{} <progress max="{}" value="{}" aria-label="{}"></progress> {}',
            gettext("%(stored)s of %(count)s") % counts,
            max(statement.line_count, 1),
            statement.stored_count,
            gettext("Progress"),
            job.get_state_display(),
        )

    @admin.display(description=_("no errors"), boolean=True)
    def has_no_errors(self, statement: Statement) -> bool | None:
        if not statement.completed_at:
            return None
        return not (statement.problems or statement.lines.filter(result=LineResult.UNREADABLE).exists())


def _upload(form: StatementImportForm) -> dict[str, Any] | None:
    """What the page shows of the file. None if the file was refused; the form shows the reason."""
    upload, now = form.cleaned_data["file"], clock.now()
    try:
        bank = form.cleaned_data["bank"]
        kept, file, found = import_jobs.upload(upload.file, upload.name, bank=bank, now=now)
        tried = importing.try_first(file, bank=bank, now=now)
        return {"upload": kept, "file": file, "found": found, "tried": tried}
    except (InvalidStatementFile, ReaderBusy) as refusal:
        form.add_error("file", reasons.translated(str(refusal)))
    except ActRefused as refusal:
        form.add_error(None, str(refusal))
    return None


class StatementLineAdmin(ReadOnlyAdmin):
    shows_personal_data = True
    mode_column = "bank"
    list_display = [
        *("line_number", "statement", "kind", "baht", "fee", "fee_vat", "paid_at", "result"),
        *("reason", "bank_transaction"),
    ]
    export_columns = (
        "id", "line_number", "statement", "kind", "amount", "fee", "fee_vat", "paid_at", "result", "error",
        "bank_transaction",
    )  # fmt: skip
    list_filter = ["result", "kind", "bank"]
    list_select_related = ["statement", "bank_transaction"]
    search_fields = ["=bank_transaction__id", "=statement__id"]
    fields = [
        "statement", "line_number", "bank", "biller_id", "bank_date", "occurrence", "kind", "baht",
        "fee", "fee_vat", "paid_at", "result", "reason", "bank_transaction", "text",
    ]  # fmt: skip
    indexed_filters = frozenset({"statement__id__exact"})

    reason = column(_("error"), lambda line: reasons.translated(line.error))
    text = column(
        _("line"), lambda line: personal_data.message(redact(statement_file.decode_line(line.line)))
    )
