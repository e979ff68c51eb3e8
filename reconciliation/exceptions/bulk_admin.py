"""Actions on many exceptions: choose rows of the list, read what happens, confirm, and see the results."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from django.contrib import messages
from django.contrib.admin.helpers import ACTION_CHECKBOX_NAME
from django.contrib.admin.options import IS_POPUP_VAR
from django.contrib.admin.templatetags.admin_urls import add_preserved_filters
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from core import clock, money
from core.admin import ReadOnlyAdmin
from reconciliation.exceptions import bulk_actions, resolution_records
from reconciliation.exceptions.actions import Action
from reconciliation.exceptions.bulk_actions import BULK_ACTIONS, Outcome, PlannedRow, RowResult, TooManyRows
from reconciliation.exceptions.forms import NoteForm

PAGE = "reconciliation_reconciliationexception_bulk"
LIST_URL = "admin:reconciliation_reconciliationexception_changelist"


class BulkActionPages(ReadOnlyAdmin):
    """Adds actions on many rows to the list of exceptions."""

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.bulk_view)
        return [path("bulk/<slug:slug>/", view, name=PAGE), *super().get_urls()]

    def get_actions(self, request: HttpRequest) -> Any:
        """The actions that this member of staff may use. The list sends the chosen rows to `_choose`."""
        if IS_POPUP_VAR in request.GET:
            return {}
        allowed = {
            slug: action for slug, action in BULK_ACTIONS.items() if request.user.has_perm(action.permission)
        }
        return {slug: (_choose, slug, str(action.label)) for slug, action in allowed.items()}

    def bulk_view(self, request: HttpRequest, slug: str) -> HttpResponse:
        """Do the action to the rows of the form, and show the result of each."""
        if (action := BULK_ACTIONS.get(slug)) is None:
            raise Http404
        if request.method != "POST" or not request.user.has_perm(action.permission):
            raise PermissionDenied
        choices, form = request.POST.getlist("row"), NoteForm(request.POST)
        try:
            if not form.is_valid():
                return self.ask_about_many(
                    request, action, [choice.partition(":")[0] for choice in choices], form
                )
            results = bulk_actions.run(action, choices, note=form.cleaned_data["note"], clock=clock.now)
        except TooManyRows:
            return self.refuse_many(request)
        return self._show_results(request, action, results)

    def ask_about_many(
        self, request: HttpRequest, action: Action, subject_ids: Sequence[str], form: NoteForm
    ) -> HttpResponse:
        """Show what the action does to each row. Raises TooManyRows and ReauthenticationRequired."""
        resolution_records.check_confirmation(action.resolution_type)  # before somebody types
        rows = bulk_actions.plan(action, subject_ids)
        self._record_views(rows)
        possible = [row for row in rows if not row.refusal]
        count = ngettext("%(count)s exception, %(amount)s", "%(count)s exceptions, %(amount)s", len(possible))
        total = money.display(sum(row.amount or 0 for row in possible))
        context = {
            "rows": [_cells(row) for row in rows],
            "is_possible": bool(possible),
            "total": count % {"count": len(possible), "amount": total},
            "refused": len(rows) - len(possible),
            "form": form,
        }
        return self._page(request, action, "admin/reconciliation/bulk_action.html", context)

    def refuse_many(self, request: HttpRequest) -> HttpResponse:
        text = _("You chose more than %(count)s exceptions. Choose fewer: nothing changed.")
        messages.error(request, text % {"count": bulk_actions.MAX_ROWS})
        return HttpResponseRedirect(self._filtered_list(request))

    def _show_results(self, request: HttpRequest, action: Action, results: list[RowResult]) -> HttpResponse:
        self._record_views([each.row for each in results])
        counts = Counter(each.outcome for each in results)
        context = {
            "results": [_cells(each.row) | {"outcome": each.outcome, "text": each.text} for each in results],
            "done": counts[Outcome.DONE],
            "waits": counts[Outcome.WAITS],
            "refused": counts[Outcome.REFUSED],
        }
        return self._page(request, action, "admin/reconciliation/bulk_results.html", context)

    def _page(
        self, request: HttpRequest, action: Action, template: str, context: dict[str, Any]
    ) -> HttpResponse:
        context |= {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": action.label,
            "action": action,
            "list_url": self._filtered_list(request),
            "bulk_url": self._with_filters(request, reverse(f"admin:{PAGE}", args=[action.slug])),
        }
        return TemplateResponse(request, template, context)

    def _record_views(self, rows: Sequence[PlannedRow]) -> None:
        """A description may name the payer and the account."""
        for row in rows:
            if row.description:
                self.record_view(row.id)

    def _filtered_list(self, request: HttpRequest) -> str:
        return self._with_filters(request, reverse(LIST_URL))

    def _with_filters(self, request: HttpRequest, url: str) -> str:
        filters: dict[str, Any] = {
            "opts": self.opts,
            "preserved_filters": self.get_preserved_filters(request),
        }
        return str(add_preserved_filters(filters, url))


def _choose(page: BulkActionPages, request: HttpRequest, chosen: Any) -> HttpResponse:
    """The chosen rows, also those that somebody has resolved meanwhile, which `chosen` leaves out."""
    action = BULK_ACTIONS[request.POST["action"]]
    subject_ids = (
        list(chosen.values_list("pk", flat=True)[: bulk_actions.MAX_ROWS + 1])
        if request.POST.get("select_across") == "1"
        else request.POST.getlist(ACTION_CHECKBOX_NAME)
    )
    try:
        return page.ask_about_many(request, action, subject_ids, NoteForm())
    except TooManyRows:
        return page.refuse_many(request)


def _cells(row: PlannedRow) -> dict[str, Any]:
    return {"row": row, "amount": None if row.amount is None else money.display(row.amount)}
