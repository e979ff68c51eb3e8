"""Acts of staff on one object: a page that says what will happen, asks for a reason, and acts once.

The page of the object links to the acts that are possible now, and the list to those that make an object. The
record in the audit trail has the token of the form, which is unique. So a second click, or the same page sent
again, changes nothing.
"""

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from operator import attrgetter
from typing import Any, ClassVar, cast
from uuid import uuid4

from django import forms
from django.contrib import messages
from django.contrib.admin.templatetags.admin_urls import add_preserved_filters
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import IntegrityError
from django.db.models import Model
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import URLPattern, path, reverse
from django.utils.functional import Promise
from django.utils.html import format_html
from django.utils.text import capfirst
from django.utils.translation import gettext as _, gettext_lazy

from audit_trail import confirmation
from audit_trail.acts import Act, ActRefused
from audit_trail.models import FORM_CONSTRAINT, AuditRecord
from audit_trail.pages import ReadOnlyAdmin, RecordedAdmin
from audit_trail.recording import recorded, recorded_by_service
from core import clock, money
from core.console import sites
from core.errors import ApiError


class ReasonForm(forms.Form):
    """What each act asks for. Subclasses add fields before the reason. user: the person who acts.

    Staff cannot type into a hidden field of a subclass: the link to the act has its value.
    """

    asks_twice: ClassVar[bool] = False
    """Whether a second step shows what the valid values will do, before it is done."""

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

    def explanation(self) -> str:
        """What will happen with these values. Empty: `ObjectAct.explain` says it. May raise ActRefused."""
        return ""


@dataclass(frozen=True, slots=True)
class ShownOnce:
    """A row that an act made, and its secret. The next page shows it. It is stored nowhere."""

    row: Model
    explanation: str
    secret: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Told:
    """What happened, in a sentence for staff, such as what a bank answered."""

    text: str
    is_good: bool


Made = Model | Act | ShownOnce | Told | None


class DoneBefore(ActRefused):
    """The same form was sent before."""

    def __init__(self, earlier: AuditRecord) -> None:
        self.object_id = earlier.object_id
        at = clock.display(earlier.created_at)
        super().__init__(_("This was done already, at %(at)s. Nothing changed.") % {"at": at})


@dataclass(frozen=True, slots=True)
class ObjectAct:
    """Something that staff may do to a row.

    explain: what will happen, in words of staff.
    words: of the row in `explain`, by the paths of attributes or methods such as `merchant.name`.
    run: does it by the service that the API calls, with the row, the valid values of the form, and the time.
        It returns the row that it made, or another act if that is what it did, or what to tell, or None. It
        raises ApiError or ValidationError if the form may be corrected, or ActRefused.
    is_possible: whether the page of the row offers it now; without it always. The service decides in the end.
    is_confirmed: whether staff confirm who they are before it, although not before each `act` of this kind.
    is_recorded_by_service: whether `run` calls a service that writes the record in its own transaction, as
        commands need it.
    is_bulk: whether staff may do it to several rows at once, see `audit_trail.bulk_acts`.
    keeps_page: whether the page of the row is shown after it, also where other acts lead to the list.
    after: asks somebody else, such as a bank, after the commit of the record and outside of a transaction.

    An act of a list makes a row. Its functions get None as the row, `run` returns the new one, and the
    service writes the record.
    """

    slug: str
    label: Promise
    act: Act
    permission: str
    explain: Promise | Callable[[Any], str]
    run: Callable[[Any, dict[str, Any], datetime], Made]
    words: Mapping[str, str] = field(default_factory=dict)
    is_possible: Callable[[Any, datetime], bool] = lambda row, now: True
    form: type[ReasonForm] = ReasonForm
    is_dangerous: bool = False
    is_confirmed: bool = False
    is_recorded_by_service: bool = False
    is_bulk: bool = False
    keeps_page: bool = False
    after: Callable[[Any, datetime], Told] | None = None

    def explanation(self, row: Any) -> str:
        if not isinstance(self.explain, Promise):
            return self.explain(row)
        found = {name: attrgetter(path)(row) for name, path in self.words.items()}
        words = {name: word() if callable(word) else word for name, word in found.items()}
        return str(self.explain) % words if words else str(self.explain)

    def check_confirmation(self) -> None:
        """Raises ReauthenticationRequired if staff must confirm who they are before this act."""
        if self.is_confirmed:
            confirmation.require()
        confirmation.check(self.act)

    def told(self, row: Any, made: Made) -> Told:
        """What to tell after the act was done. `after` asks for it."""
        if isinstance(made, Told):
            return made
        if self.after is not None:
            return self.after(row, clock.now())
        done = made.label if isinstance(made, Act) else self.label
        return Told(_("%(act)s: done.") % {"act": done}, is_good=True)


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
    returns_to_list = False
    """Whether the list is shown after an act, because it has the next row to decide about."""
    explains_personal_data = False
    """Whether explanations name customers. Then each page with one is recorded as a view."""

    def get_urls(self) -> list[URLPattern]:
        act, list_act = (self.admin_site.admin_view(view) for view in (self.act_view, self.list_act_view))
        page = f"{self.opts.app_label}_{self.opts.model_name}"
        return [
            path("do/<slug:slug>/", list_act, name=f"{page}_list_act"),
            path("<str:object_id>/do/<slug:slug>/", act, name=f"{page}_act"),
            *super().get_urls(),
        ]

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> Any:
        links = {"act_links": self._links(request, None, self.list_acts)}
        return super().changelist_view(request, links | (extra_context or {}))

    def render_change_form(self, request: HttpRequest, context: Any, *args: Any, **more: Any) -> HttpResponse:
        row = more.get("obj")
        if row is not None:
            context["act_links"] = self.act_links(request, row)
        shown: HttpResponse = super().render_change_form(request, context, *args, **more)
        return shown

    def act_links(self, request: HttpRequest, row: Any) -> list[ActLink]:
        """The acts that this user may do to the row now."""
        return self._links(request, row, self.object_acts)

    def _links(self, request: HttpRequest, row: Any, acts: tuple[ObjectAct, ...]) -> list[ActLink]:
        now, page = clock.now(), [] if row is None else [quote(row.pk)]
        name = "act" if page else "list_act"
        return [
            ActLink(each.label, self.url(request, name, *page, each.slug), each.is_dangerous, each.slug)
            for each in acts
            if request.user.has_perm(each.permission) and each.is_possible(row, now)
        ]

    def act_view(self, request: HttpRequest, object_id: str, slug: str) -> HttpResponse:
        """Explain an act, or do it once. Raises Http404 and PermissionDenied."""
        found = find_act(self.object_acts, slug)
        row = self.get_object(request, unquote(object_id))
        if row is None and request.method != "POST":
            raise Http404
        self.check_permission(request, row, found)
        if row is None:  # a second click on the button of an act that deleted it
            messages.info(request, _("It does not exist any more. Nothing changed."))
            return self._redirect(request, None)
        return self._act(request, row, found)

    def list_act_view(self, request: HttpRequest, slug: str) -> HttpResponse:
        """Explain an act that makes a row, or do it once. Raises Http404 and PermissionDenied."""
        found = find_act(self.list_acts, slug)
        self.check_permission(request, None, found)
        return self._act(request, None, found)

    def check_permission(self, request: HttpRequest, row: Any, found: ObjectAct) -> None:
        """Raises PermissionDenied."""
        if not (self.has_view_permission(request, row) and request.user.has_perm(found.permission)):
            raise PermissionDenied

    def _act(self, request: HttpRequest, row: Any, found: ObjectAct) -> HttpResponse:
        is_sent = request.method == "POST"
        form = found.form(row, request.POST if is_sent else None, user=request.user)
        form.files = request.FILES
        if form.is_valid() and (not form.asks_twice or "sure" in request.POST):
            return self._do(request, row, found, form)
        if not found.is_possible(row, clock.now()):
            messages.warning(request, _("This is not possible now."))
            return self._redirect(request, row)
        found.check_confirmation()  # before somebody types
        if not is_sent:
            for field in form.hidden_fields():
                form.initial.setdefault(field.name, request.GET.get(field.name, "").strip())
        if "token" in form.errors:
            messages.error(request, _("Open the page again."))
        return self._act_page(request, row, found, form)

    def _do(self, request: HttpRequest, row: Any, found: ObjectAct, form: ReasonForm) -> HttpResponse:
        said = ""
        with suppress(ActRefused):  # before the act, because it names what the act changes
            # Messages are stored, so they name no payer, nor what people wrote.
            is_private = self.explains_personal_data or found.keeps_page
            said = "" if is_private else form.explanation() or found.explanation(row)
        try:
            made = self.perform(found, row, form.cleaned_data)
        except DoneBefore as earlier:
            messages.info(request, str(earlier))
            made_before = self.model._default_manager.filter(pk=earlier.object_id)
            return self._redirect(request, made_before.first() if row is None else row)
        except ActRefused as refusal:
            messages.warning(request, _("%(refusal)s Nothing changed.") % {"refusal": refusal})
            return self._redirect(request, row)
        except (ApiError, ValidationError) as refusal:
            _add_refusal(form, refusal)
            return self._act_page(request, row, found, form)
        if isinstance(made, ShownOnce):  # a message would store it in a cookie or in the table of sessions
            page = self.act_response(request, row, found, {"made": made}, "admin/shown_once.html")
            page.headers["Cache-Control"] = "no-store"
            return page
        told, shown = found.told(row, made), cast(Any, made if row is None else row)
        text = told.text
        if not isinstance(made, Told) and found.after is None:
            result = self.result_of(request, made if isinstance(made, Model) else row)
            text = f"{text} {result or said}".strip()
        if self.returns_to_list and not found.keeps_page:
            text, shown = format_html('{} <a href="{}">{}</a>', text, self._row_url(request, row), row), None
        elif not (found.keeps_page or self.model._default_manager.filter(pk=shown.pk).exists()):
            shown = None
        messages.add_message(request, messages.SUCCESS if told.is_good else messages.WARNING, text)
        return self._redirect(request, shown)

    def result_of(self, request: HttpRequest, row: Any) -> str:
        """How the row of an act stands now, as its page says it."""
        site: Any = self.admin_site
        page = site.get_model_admin(type(row)) if site.is_registered(type(row)) else self
        try:
            fresh = page.get_object(request, str(row.pk))
        except Http404:
            return ""
        sentence = page.sentence_of(fresh) if fresh is not None and hasattr(page, "sentence_of") else ""
        amount = getattr(fresh, "amount", None)
        baht = money.display(amount) if amount else ""
        words = " ".join(filter(None, [capfirst(_(str(page.opts.verbose_name))), str(row.pk), baht]))
        return sentence and f"{words}: {sentence}"

    def perform(self, found: ObjectAct, row: Any, values: dict[str, Any]) -> Made:
        """Act and write the record, in one transaction, unless the same form did it before.

        Raises DoneBefore, ActRefused, ApiError, ValidationError, ReauthenticationRequired.
        """
        found.check_confirmation()
        reason, token, now = values["reason"], values["token"], clock.now()
        if (earlier := AuditRecord.objects.filter(form_token=token).first()) is not None:
            raise DoneBefore(earlier)
        try:
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
        except IntegrityError as error:
            if " has moved\n" in str(error):
                raise ActRefused(_("The merchant has moved to another instance.")) from None
            if FORM_CONSTRAINT not in str(error):
                raise
            raise DoneBefore(AuditRecord.objects.get(form_token=token)) from None

    def _act_page(self, request: HttpRequest, row: Any, found: ObjectAct, form: ReasonForm) -> HttpResponse:
        try:
            explanation = form.explanation() or found.explanation(row)
        except ActRefused as refusal:
            messages.warning(request, str(refusal))
            return self._redirect(request, row)
        if self.explains_personal_data:
            self.record_view(str(row.pk))
        is_checked = form.asks_twice and form.is_valid()
        steps = {"is_checked": is_checked, "is_last_step": is_checked or not form.asks_twice}
        return self.act_response(request, row, found, {"explanation": explanation, "form": form, **steps})

    def act_response(
        self,
        request: HttpRequest,
        row: Any,
        found: ObjectAct,
        context: dict[str, Any],
        template: str = "admin/act.html",
    ) -> HttpResponse:
        return sites.page(
            request,
            template,
            found.label,
            **context,
            opts=self.opts,
            original=row,
            object_act=found,
            rows_url=self.url(request, "changelist"),
            row_url=self._row_url(request, row),
        )

    def url(self, request: HttpRequest, page: str, *args: str) -> str:
        """The address of one of these pages, with the filters of the list for the way back."""
        url = reverse(f"admin:{self.opts.app_label}_{self.opts.model_name}_{page}", args=args)
        filters: Any = {"opts": self.opts, "preserved_filters": self.get_preserved_filters(request)}
        return str(add_preserved_filters(filters, url))

    def _row_url(self, request: HttpRequest, row: Any) -> str:
        """The page of a row, or the list."""
        if row is None:
            return self.url(request, "changelist")
        return self.url(request, "change", quote(row.pk))

    def _redirect(self, request: HttpRequest, row: Any) -> HttpResponse:
        return HttpResponseRedirect(self._row_url(request, row))


class ActingAdmin(ActPages, ReadOnlyAdmin):
    """Pages of rows that staff can act on, and change in no other way."""


def find_act(acts: Iterable[ObjectAct], slug: str) -> ObjectAct:
    """Raises Http404."""
    found = next((each for each in acts if each.slug == slug), None)
    if found is None:
        raise Http404
    return found


def _add_refusal(form: ReasonForm, refusal: ApiError | ValidationError) -> None:
    """Show what a service refused, at the field if the form has it."""
    if isinstance(refusal, ApiError):
        text = refusal.translated + (f" ({refusal.detail})" if refusal.detail else "")
        shown = {field.name for field in form.visible_fields()}
        form.add_error(refusal.param if refusal.param in shown else None, text)
        return
    by_field = refusal.error_dict if hasattr(refusal, "error_dict") else {"": refusal.error_list}
    for name, errors in by_field.items():
        form.add_error(name if name in form.fields else None, errors)
