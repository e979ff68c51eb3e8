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
from receipts import acts, cases, ways
from receipts.act_forms import WhyForm
from receipts.cases import Case
from receipts.ways import Way

LIST, PAGE = "admin:receipts_waiting_changelist", "admin:receipts_waiting_change"


class ActingAdmin(ReadOnlyAdmin):
    """A second click, or a colleague's at the same time, changes nothing and is told who was first."""

    def get_urls(self) -> list[URLPattern]:
        act = self.admin_site.admin_view(self.act_view)
        return [
            path("<str:object_id>/act/<str:slug>/", act, name="receipts_waiting_act"),
            *super().get_urls(),
        ]

    def buttons(self, request: HttpRequest, case: Case) -> dict[str, Any]:
        """What whoever looks at the page of an exception may click there."""
        may_act = _may_act(request)
        found = [way for way in ways.possible(case) if request.user.has_perm(way.permission)]
        return {
            **self._kept(request),
            "may_act": may_act,
            "can_attach": any(way.slug == "attach" for way in found),
            "ways": [way for way in found if way.slug != "attach"],
        }

    def act_view(self, request: HttpRequest, object_id: str, slug: str) -> HttpResponse:
        if not _may_act(request):
            raise PermissionDenied
        case = case_of(object_id)
        if (way := ways.find(slug, case)) is None:
            raise Http404
        if not request.user.has_perm(way.permission):
            raise PermissionDenied
        if request.method != "POST":
            return self._ask(request, case, way, _unfilled(way, request))
        form = way.form(request.POST)
        if not form.is_valid() or (way.asks_again and "sure" not in request.POST):
            return self._ask(request, case, way, form)
        return self._do(request, case, way, form.cleaned_data)

    def _ask(self, request: HttpRequest, case: Case, way: Way, form: WhyForm) -> HttpResponse:
        valid = form.is_bound and form.is_valid()
        try:
            says = ways.says(case, way, form.cleaned_data if valid else form.initial)
        except acts.NotPossible as refusal:
            return self._refuse(request, case, refusal)
        self.record_view(str(case.subject.pk))
        context = {
            **self.admin_site.each_context(request),
            **self._kept(request),
            "title": way.label,
            "case": case,
            "way": way,
            "form": form,
            "says": says,
            "is_fixed": valid,
            "is_last": valid or not way.asks_again,
        }
        return TemplateResponse(request, "admin/receipts/act.html", context)

    def _do(self, request: HttpRequest, case: Case, way: Way, filled: dict[str, Any]) -> HttpResponse:
        subject = case.subject
        try:
            made = way.do(subject.pk, filled, request.user.get_username(), clock.now())
        except acts.NotPossible as refusal:
            return self._refuse(request, case, refusal)
        self.log_change(request, subject, f"{way.deed}: {filled['why']}")
        page = add_preserved_filters(self._kept(request), reverse(PAGE, args=[quote(subject.pk)]))
        said = f"{way.done}: {case.title} ({subject.pk})."
        messages.success(request, format_html('{} <a href="{}">Show it</a>', said, page))
        if approvals.waits(subject.pk, str(getattr(made, "pk", ""))):
            messages.warning(request, "It is above the limits: a second person must approve it first.")
        return self._redirect(request, reverse(LIST))

    def _refuse(self, request: HttpRequest, case: Case, refusal: acts.NotPossible) -> HttpResponse:
        messages.warning(request, str(refusal))
        return self._redirect(request, reverse(PAGE, args=[quote(case.subject.pk)]))

    def _kept(self, request: HttpRequest) -> dict[str, Any]:
        """How the list was filtered, for links that lead back to it."""
        return {
            "opts": self.opts,
            "preserved_filters": self.get_preserved_filters(request),
            "list_filters": request.GET.get("_changelist_filters", ""),
        }

    def _redirect(self, request: HttpRequest, url: str) -> HttpResponse:
        return HttpResponseRedirect(add_preserved_filters(self._kept(request), url))


def _may_act(request: HttpRequest) -> bool:
    return any(request.user.has_perm(permission) for permission in (ways.RESOLVE, ways.CONFIRM))


def case_of(subject_id: str) -> Case:
    """Raises Http404."""
    case = cases.of([subject_id]).get(subject_id) if ids.looks_right(subject_id, "") else None
    if case is None:
        raise Http404
    return case


def _unfilled(way: Way, request: HttpRequest) -> WhyForm:
    """What the click already says, such as which payment, pasted with whatever stood around it."""
    given = {name: value.strip() for name in way.form.base_fields if (value := request.GET.get(name))}
    return way.form(initial=given)
