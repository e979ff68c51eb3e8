"""The page on which staff confirm an act on an exception, and what happens when they do."""

from typing import Any

from django.contrib import messages
from django.contrib.admin.templatetags.admin_urls import add_preserved_filters
from django.contrib.admin.utils import quote
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html

from approvals import services as approvals
from core import clock, ids
from core.admin import ReadOnlyAdmin
from reconciliation.exceptions import actions, resolutions, summaries
from reconciliation.exceptions.actions import Action
from reconciliation.exceptions.forms import NoteForm
from reconciliation.exceptions.summaries import ExceptionSummary

LIST_URL, DETAIL_URL = (
    "admin:reconciliation_reconciliationexception_changelist",
    "admin:reconciliation_reconciliationexception_change",
)


class ExceptionActionAdmin(ReadOnlyAdmin):
    """A second click, or a colleague's at the same time, changes nothing and is told who was first."""

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.action_view)
        return [
            path("<str:object_id>/act/<str:slug>/", view, name="reconciliation_reconciliationexception_act"),
            *super().get_urls(),
        ]

    def buttons(self, request: HttpRequest, summary: ExceptionSummary) -> dict[str, Any]:
        """What whoever looks at the page of an exception may click there."""
        may_resolve = _may_resolve(request)
        available = [
            action for action in actions.available(summary) if request.user.has_perm(action.permission)
        ]
        return {
            **self._list_context(request),
            "may_resolve": may_resolve,
            "can_attach": any(action.slug == "attach" for action in available),
            "actions": [action for action in available if action.slug != "attach"],
        }

    def action_view(self, request: HttpRequest, object_id: str, slug: str) -> HttpResponse:
        if not _may_resolve(request):
            raise PermissionDenied
        summary = get_summary_or_404(object_id)
        if (action := actions.find(slug, summary)) is None:
            raise Http404
        if not request.user.has_perm(action.permission):
            raise PermissionDenied
        if request.method != "POST":
            return self._ask(request, summary, action, _initial_form(action, request))
        form = action.form(request.POST)
        if not form.is_valid() or (action.needs_second_step and "sure" not in request.POST):
            return self._ask(request, summary, action, form)
        return self._do(request, summary, action, form.cleaned_data)

    def _ask(
        self, request: HttpRequest, summary: ExceptionSummary, action: Action, form: NoteForm
    ) -> HttpResponse:
        valid = form.is_bound and form.is_valid()
        try:
            description = actions.describe(summary, action, form.cleaned_data if valid else form.initial)
        except resolutions.ActionNotAllowed as refusal:
            return self._refuse(request, summary, refusal)
        self.record_view(str(summary.subject.pk))
        context = {
            **self.admin_site.each_context(request),
            **self._list_context(request),
            "title": action.label,
            "summary": summary,
            "action": action,
            "form": form,
            "description": description,
            "is_read_only": valid,
            "is_final_step": valid or not action.needs_second_step,
        }
        return TemplateResponse(request, "admin/reconciliation/action.html", context)

    def _do(
        self, request: HttpRequest, summary: ExceptionSummary, action: Action, values: dict[str, Any]
    ) -> HttpResponse:
        subject = summary.subject
        try:
            result = action.execute(subject.pk, values, request.user.get_username(), clock.now())
        except resolutions.ActionNotAllowed as refusal:
            return self._refuse(request, summary, refusal)
        self.log_change(request, subject, f"{action.resolution_type}: {values['note']}")
        url = add_preserved_filters(
            self._list_context(request), reverse(DETAIL_URL, args=[quote(subject.pk)])
        )
        message = f"{action.success_message}: {summary.title} ({subject.pk})."
        messages.success(request, format_html('{} <a href="{}">Show it</a>', message, url))
        if approvals.is_waiting(subject.pk, str(getattr(result, "pk", ""))):
            messages.warning(request, "It is above the limit: a second person must approve it first.")
        return self._redirect(request, reverse(LIST_URL))

    def _refuse(
        self, request: HttpRequest, summary: ExceptionSummary, refusal: resolutions.ActionNotAllowed
    ) -> HttpResponse:
        messages.warning(request, str(refusal))
        return self._redirect(request, reverse(DETAIL_URL, args=[quote(summary.subject.pk)]))

    def _list_context(self, request: HttpRequest) -> dict[str, Any]:
        """How the list was filtered, for links that lead back to it."""
        return {
            "opts": self.opts,
            "preserved_filters": self.get_preserved_filters(request),
            "list_filters": request.GET.get("_changelist_filters", ""),
        }

    def _redirect(self, request: HttpRequest, url: str) -> HttpResponse:
        return HttpResponseRedirect(add_preserved_filters(self._list_context(request), url))


def _may_resolve(request: HttpRequest) -> bool:
    return any(request.user.has_perm(permission) for permission in (actions.RESOLVE, actions.CONFIRM))


def get_summary_or_404(subject_id: str) -> ExceptionSummary:
    """Raises Http404."""
    summary = summaries.by_id([subject_id]).get(subject_id) if ids.looks_right(subject_id, "") else None
    if summary is None:
        raise Http404
    return summary


def _initial_form(action: Action, request: HttpRequest) -> NoteForm:
    """What the click already says, such as which payment, pasted with whatever stood around it."""
    values = {name: value.strip() for name in action.form.base_fields if (value := request.GET.get(name))}
    return action.form(initial=values)
