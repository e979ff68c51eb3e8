"""Acts of staff on one object: a page that says what will happen, asks for a reason, and acts once.

The page of the object links to the acts that are possible now, and the list to those that make an object. The
record in the audit trail has the token of the form, which is unique. So a second click, or the same page sent
again, changes nothing.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID, uuid4

from django import forms
from django.contrib import messages
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import IntegrityError
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.functional import Promise
from django.utils.timezone import localtime
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from audit_trail import confirmation
from audit_trail.acts import Act
from audit_trail.models import FORM_CONSTRAINT, AuditRecord
from audit_trail.recording import recorded, recorded_by_service
from core import clock
from core.admin import ReadOnlyAdmin, RecordedAdmin
from core.errors import ApiError


class ReasonForm(forms.Form):
    """What each act asks for. Subclasses add fields before the reason. user: the person who acts."""

    reason = forms.CharField(
        label=gettext_lazy("Reason"),
        max_length=500,
        widget=forms.Textarea(attrs={"rows": 3}),
        help_text=gettext_lazy("Colleagues read it in the audit trail."),
    )
    token = forms.UUIDField(widget=forms.HiddenInput)

    def __init__(self, row: Any, data: Any = None, *, user: Any) -> None:
        super().__init__(data, initial={"token": uuid4()})
        self.row, self.user = row, user
        self.order_fields([*(name for name in self.fields if name != "reason"), "reason"])


@dataclass(frozen=True, slots=True)
class ShownOnce:
    """A row that an act made, and its secret. The next page shows it. It is stored nowhere."""

    row: Model
    explanation: str
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Told:
    """What somebody else answered, such as a bank, in a sentence for staff."""

    text: str
    is_good: bool


Made = Model | Act | ShownOnce | None


@dataclass(frozen=True, slots=True)
class ObjectAct:
    """Something that staff may do to a row.

    explain: what will happen, in words of staff.
    run: does it by the service that the API calls, with the row, the valid values of the form, and the time.
        It returns the row that it made, or another act if that is what it did, or None. It raises ApiError or
        ValidationError if it is not possible.
    is_possible: whether the page of the row offers it now. The service decides in the end.
    is_recorded_by_service: whether `run` calls a service that writes the record, as commands need it.
    after: asks somebody else, such as a bank, after the commit of the record and outside of a transaction.

    An act of a list makes a row. Its functions get None as the row, `run` returns the new one, and the
    service writes the record.
    """

    slug: str
    label: Promise
    act: Act
    permission: str
    explain: Callable[[Any], str]
    run: Callable[[Any, dict[str, Any], datetime], Made]
    is_possible: Callable[[Any, datetime], bool]
    form: type[ReasonForm] = ReasonForm
    is_dangerous: bool = False
    is_recorded_by_service: bool = False
    after: Callable[[Any, datetime], Told] | None = None


@dataclass(frozen=True, slots=True)
class ActLink:
    """A button on the page of an object."""

    label: Promise
    url: str
    is_dangerous: bool
    slug: str = ""


class ActPages(RecordedAdmin):
    """Adds acts to the pages of rows, and to their list."""

    object_acts: tuple[ObjectAct, ...] = ()
    list_acts: tuple[ObjectAct, ...] = ()

    def get_urls(self) -> list[URLPattern]:
        act, list_act = (self.admin_site.admin_view(view) for view in (self.act_view, self.list_act_view))
        return [
            path("do/<slug:slug>/", list_act, name=f"{self._page}_list_act"),
            path("<str:object_id>/do/<slug:slug>/", act, name=f"{self._page}_act"),
            *super().get_urls(),
        ]

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        links = {"act_links": self._links(request, None, self.list_acts)}
        return super().changelist_view(request, links | (extra_context or {}))

    def render_change_form(
        self, request: HttpRequest, context: Any, *args: Any, **kwargs: Any
    ) -> HttpResponse:
        row = kwargs.get("obj")
        if row is not None:
            context["act_links"] = self.act_links(request, row)
        shown: HttpResponse = super().render_change_form(request, context, *args, **kwargs)
        return shown

    def act_links(self, request: HttpRequest, row: Model) -> list[ActLink]:
        """The acts that this user may do to the row now."""
        return self._links(request, row, self.object_acts)

    def _links(self, request: HttpRequest, row: Model | None, acts: tuple[ObjectAct, ...]) -> list[ActLink]:
        now = clock.now()
        return [
            ActLink(each.label, self._act_url(row, each), each.is_dangerous, each.slug)
            for each in acts
            if request.user.has_perm(each.permission) and each.is_possible(row, now)
        ]

    def act_view(self, request: HttpRequest, object_id: str, slug: str) -> HttpResponse:
        """Explain an act, or do it once. Raises Http404 and PermissionDenied."""
        found = _find(self.object_acts, slug)
        row = self.get_object(request, unquote(object_id))
        if row is None and request.method != "POST":
            raise Http404
        self._check_permission(request, row, found)
        if row is None:  # a second click on the button of an act that deleted it
            messages.info(request, _("It does not exist any more. Nothing changed."))
            return HttpResponseRedirect(self._rows_url)
        return self._act(request, row, found)

    def list_act_view(self, request: HttpRequest, slug: str) -> HttpResponse:
        """Explain an act that makes a row, or do it once. Raises Http404 and PermissionDenied."""
        found = _find(self.list_acts, slug)
        self._check_permission(request, None, found)
        return self._act(request, None, found)

    def _check_permission(self, request: HttpRequest, row: Any, found: ObjectAct) -> None:
        if not (self.has_view_permission(request, row) and request.user.has_perm(found.permission)):
            raise PermissionDenied

    def _act(self, request: HttpRequest, row: Any, found: ObjectAct) -> HttpResponse:
        if request.method != "POST":
            if not found.is_possible(row, clock.now()):
                messages.warning(request, _("This is not possible now."))
                return HttpResponseRedirect(self._row_url(row))
            confirmation.check(found.act)  # before somebody types
            return self._act_page(request, row, found, found.form(row, user=request.user))
        form = found.form(row, request.POST, user=request.user)
        if not form.is_valid():
            if "token" in form.errors:
                messages.error(request, _("Open the page again."))
            return self._act_page(request, row, found, form)
        return self._do(request, row, found, form)

    def _do(self, request: HttpRequest, row: Any, found: ObjectAct, form: ReasonForm) -> HttpResponse:
        values: dict[str, Any] = form.cleaned_data
        token: UUID = values["token"]
        if (earlier := AuditRecord.objects.filter(form_token=token).first()) is not None:
            return self._done_before(request, row, earlier)
        try:
            made = self._run(found, row, values)
        except (ApiError, ValidationError) as refusal:
            _add_refusal(form, refusal)
            return self._act_page(request, row, found, form)
        except IntegrityError as error:
            if FORM_CONSTRAINT not in str(error):
                raise
            return self._done_before(request, row, AuditRecord.objects.get(form_token=token))
        if isinstance(made, ShownOnce):
            return self._shown_once_page(request, row, found, made)
        _tell(request, found, row, made)
        shown: Any = made if row is None else row
        is_kept = self.model._default_manager.filter(pk=shown.pk).exists()
        return HttpResponseRedirect(self._row_url(shown) if is_kept else self._rows_url)

    def _run(self, found: ObjectAct, row: Any, values: dict[str, Any]) -> Made:
        """Act and write the record, in one transaction."""
        reason, token, now = values["reason"], values["token"], clock.now()
        if found.is_recorded_by_service:
            with recorded_by_service(found.act, reason=reason, form_token=token):
                return found.run(row, values, now)
        with recorded(found.act, row, reason=reason, form_token=token) as recording:
            made = found.run(row, values, now)
            if isinstance(made, Act):
                recording.act = made
            elif isinstance(made, Model):
                recording.details[str(made._meta.model_name)] = str(made.pk)
        return made

    def _done_before(self, request: HttpRequest, row: Model | None, earlier: AuditRecord) -> HttpResponse:
        at = f"{localtime(earlier.created_at):%Y-%m-%d %H:%M:%S}"
        messages.info(request, _("This was done already, at %(at)s. Nothing changed.") % {"at": at})
        shown = row or self.model._default_manager.filter(pk=earlier.object_id).first()
        return HttpResponseRedirect(self._row_url(shown))

    def _act_page(self, request: HttpRequest, row: Any, found: ObjectAct, form: ReasonForm) -> HttpResponse:
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "original": row,
            "title": found.label,
            "object_act": found,
            "explanation": found.explain(row),
            "form": form,
            "row_url": self._row_url(row),
        }
        return TemplateResponse(request, "admin/act.html", context)

    def _shown_once_page(
        self, request: HttpRequest, row: Any, found: ObjectAct, made: ShownOnce
    ) -> HttpResponse:
        """Show a secret. A message would store it in a cookie or in the table of sessions."""
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "original": row,
            "title": found.label,
            "object_act": found,
            "made": made,
            "row_url": self._row_url(row),
        }
        shown = TemplateResponse(request, "admin/shown_once.html", context)
        shown.headers["Cache-Control"] = "no-store"
        return shown

    @property
    def _rows_url(self) -> str:
        return reverse(f"admin:{self._page}_changelist")

    @property
    def _page(self) -> str:
        return f"{self.opts.app_label}_{self.opts.model_name}"

    def _row_url(self, row: Model | None) -> str:
        if row is None:
            return self._rows_url
        return reverse(f"admin:{self._page}_change", args=[quote(row.pk)])

    def _act_url(self, row: Model | None, found: ObjectAct) -> str:
        if row is None:
            return reverse(f"admin:{self._page}_list_act", args=[found.slug])
        return reverse(f"admin:{self._page}_act", args=[quote(row.pk), found.slug])


class ActingAdmin(ActPages, ReadOnlyAdmin):
    """Pages of rows that staff can act on, and change in no other way."""


def _tell(request: HttpRequest, found: ObjectAct, row: Any, made: Made) -> None:
    """Tell on the next page that the act was done, or what it found out."""
    if found.after is None:
        done = made.label if isinstance(made, Act) else found.label
        messages.success(request, _("%(act)s: done.") % {"act": done})
        return
    told = found.after(row, clock.now())
    messages.add_message(request, messages.SUCCESS if told.is_good else messages.WARNING, told.text)


def _find(acts: tuple[ObjectAct, ...], slug: str) -> ObjectAct:
    """Raises Http404."""
    found = next((each for each in acts if each.slug == slug), None)
    if found is None:
        raise Http404
    return found


def _add_refusal(form: ReasonForm, refusal: ApiError | ValidationError) -> None:
    """Show what a service refused, at the field if the form has it."""
    if isinstance(refusal, ApiError):
        form.add_error(None, refusal.translated)
        return
    by_field = refusal.error_dict if hasattr(refusal, "error_dict") else {"": refusal.error_list}
    for name, errors in by_field.items():
        form.add_error(name if name in form.fields else None, errors)
