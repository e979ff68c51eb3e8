"""The console pages of approvals: outgoing money of all kinds that waits for a second person."""

from collections.abc import Sequence
from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import quote, unquote
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.shortcuts import get_object_or_404
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from approvals import services
from approvals.models import Approval, ApprovalKind, ApprovalStatus
from audit_trail.acts import Act
from audit_trail.recording import recorded
from console import approval_modes, approval_page
from core import admin_lists, clock, ids, money
from core.admin import ReadOnlyAdmin
from core.admin_filters import ModeFilter
from ledger import services as ledger
from merchants.models import Mode
from reconciliation.exceptions import approval_handlers as movements
from refunds import services as refunds
from withdrawals import services as withdrawals

DECIDE_PERMISSION = "approvals.decide_approval"
LIST_URL, PAGE_URL = "admin:approvals_approval_changelist", "admin:approvals_approval_change"


class DecisionForm(forms.Form):
    note = forms.CharField(
        max_length=500,
        widget=forms.Textarea(attrs={"rows": 3}),
        label=_("Reason"),
        help_text=_("Only staff see it."),
    )


class StatusFilter(admin.SimpleListFilter):
    """Shows waiting approvals by default."""

    title, parameter_name = _("status"), "status"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        return [
            ("all", gettext("All")),
            *((each.value, gettext(each.label)) for each in ApprovalStatus if each != ApprovalStatus.WAITING),
        ]

    def choices(self, changelist: Any) -> Any:
        shown, *others = super().choices(changelist)
        return [shown | {"display": gettext(ApprovalStatus.WAITING.label)}, *others]

    def queryset(self, request: Any, queryset: Any) -> Any:
        value = self.value() or ApprovalStatus.WAITING
        return queryset if value == "all" else queryset.filter(status=value)


class MoneyFilter(ModeFilter):
    """Live or test. Of what was decided, the newest."""

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        if self.value() not in Mode.values:
            return queryset
        is_waiting = request.GET.get("status", ApprovalStatus.WAITING) == ApprovalStatus.WAITING
        found = queryset if is_waiting else admin_lists.newest(queryset)[0]
        return approval_modes.of_mode(found, str(self.value()))


class ApprovalAdmin(ReadOnlyAdmin):
    shows_personal_data = True
    list_display = [
        "age", "baht", "kind", "merchant", "destination", "requested_by", "reason", "balance", "status",
    ]  # fmt: skip
    list_display_links = ["age", "baht"]
    list_filter = [StatusFilter, MoneyFilter]
    list_select_related = ["merchant"]
    search_fields = ["=subject_id"]
    search_help_text = _("Search by id of a withdrawal, refund, return or bank transaction.")
    ordering = ["requested_at", "id"]
    indexed_filters = frozenset({"status"})

    def prepare_rows(self, shown: Sequence[Any]) -> None:
        """With the balance of the merchant."""
        super().prepare_rows(shown)
        balances = ledger.balances({row.merchant_id for row in shown if row.merchant_id})
        for row in shown:
            row.balance = balances.get(row.merchant_id)

    def changelist_view(self, request: HttpRequest, extra_context: Any = None) -> HttpResponse:
        return super().changelist_view(request, {"title": _("Approvals")} | (extra_context or {}))

    def get_urls(self) -> list[URLPattern]:
        decide = self.admin_site.admin_view(self.decide_view)
        return [
            path("<str:object_id>/decide/", decide, name="approvals_approval_decide"),
            *super().get_urls(),
        ]

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        if not self.has_view_permission(request):
            raise PermissionDenied
        approval = _find(unquote(object_id))
        self.record_view(approval.pk)
        return self._page(request, approval, DecisionForm())

    def decide_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """Approve or reject. A second click, or a colleague at the same time, changes nothing."""
        if request.method != "POST" or not request.user.has_perm(DECIDE_PERMISSION):
            raise PermissionDenied
        approval, form = _find(unquote(object_id)), DecisionForm(request.POST)
        is_rejected = "reject" in request.POST
        if not form.is_valid():
            return self._page(request, approval, form)
        decide = services.reject if is_rejected else services.approve
        try:
            note = form.cleaned_data["note"]
            with recorded(Act.REJECTED if is_rejected else Act.APPROVED, approval, reason=note):
                done = decide(approval.id, handler_for(approval), note=note, now=clock.now())
        except services.NotDecidable as error:
            messages.warning(request, gettext("%(refusal)s Nothing changed.") % {"refusal": error})
            return HttpResponseRedirect(reverse(PAGE_URL, args=[quote(approval.pk)]))
        words = {
            "kind": done.get_kind_display(),
            "subject": done.subject_id,
            "status": done.get_status_display().lower(),
        }
        # Django writes the first letter as a capital, and an id with another letter is another id.
        messages.success(request, gettext("%(kind)s %(subject)s %(status)s.") % words)
        return HttpResponseRedirect(reverse(LIST_URL))

    def _page(self, request: HttpRequest, approval: Approval, form: DecisionForm) -> HttpResponse:
        may_decide = approval.is_waiting and request.user.has_perm(DECIDE_PERMISSION)
        own = services.own_request(approval)
        on_approval, on_rejection = approval_page.effects(approval)
        title = {"kind": approval.get_kind_display(), "amount": money.display(approval.amount)}
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": gettext("%(kind)s of %(amount)s") % title,
            "approval": approval,
            "details": approval_page.details(approval),
            "on_approval": on_approval,
            "on_rejection": on_rejection,
            "own": own if approval.is_waiting else "",
            "form": form if may_decide and not own else None,
        }
        return TemplateResponse(request, "admin/approval.html", context)

    @admin.display(description=_("age"))
    def age(self, row: Approval) -> str:
        text, is_old = approval_page.age(row), clock.now() - row.requested_at > approval_page.OVERDUE_AGE
        return format_html('<span class="state bad">{}</span>', text) if row.is_waiting and is_old else text

    @admin.display(description=_("destination"))
    def destination(self, row: Approval) -> str:
        """Without the name: the security log records only views of single approvals."""
        return approval_page.account(row)

    @admin.display(description=_("balance"))
    def balance(self, row: Any) -> str | None:
        """The balance, or the debt if there is one."""
        if row.balance and row.balance.debt:
            return format_html("{}<br>{}", _("debt"), approval_page.debt(row.balance))
        return money.display(row.balance.available) if row.balance else None


def _find(approval_id: str) -> Approval:
    """Raises Http404."""
    if not ids.looks_right(approval_id, "apr_"):
        raise Http404
    return get_object_or_404(Approval.objects.select_related("merchant"), pk=approval_id)


HANDLERS: dict[str, services.ApprovalHandler] = {
    ApprovalKind.WITHDRAWAL: withdrawals.APPROVAL_HANDLER,
    ApprovalKind.REFUND: refunds.APPROVAL_HANDLER,
    **movements.HANDLERS,
}


def handler_for(approval: Approval) -> services.ApprovalHandler:
    return HANDLERS[approval.kind]
