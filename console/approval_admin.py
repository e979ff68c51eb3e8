"""The console pages of approvals: outgoing money of all kinds that waits for a second person."""

from typing import Any

from django import forms
from django.contrib import admin, messages
from django.contrib.admin.utils import quote, unquote
from django.contrib.admin.views.main import ChangeList
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
from core import clock, ids, money, personal_data, request_context
from core.admin import ReadOnlyAdmin
from core.admin_lists import BoundedChangeList
from ledger import services as ledger
from ledger.services import Balance
from reconciliation.exceptions import approval_handlers as movements
from reconciliation.exceptions.detail_page import bank_label
from reconciliation.exceptions.explanations import format_duration
from refunds import services as refunds
from withdrawals import services as withdrawals

DECIDE_PERMISSION = "approvals.decide_approval"
LIST_URL, PAGE_URL = "admin:approvals_approval_changelist", "admin:approvals_approval_change"
# The console page of the subject of an approval.
SUBJECT_URLS = {
    ApprovalKind.WITHDRAWAL: "admin:withdrawals_withdrawal_change",
    ApprovalKind.REFUND: "admin:refunds_refund_change",
    ApprovalKind.RETURN: "admin:reconciliation_return_change",
    ApprovalKind.RETURN_BY_HAND: "admin:reconciliation_return_change",
    ApprovalKind.WRITE_OFF: "admin:reconciliation_reconciliationexception_change",
    ApprovalKind.NEVER_ARRIVED: "admin:transfers_transfer_change",
}


class DecisionForm(forms.Form):
    note = forms.CharField(
        max_length=500,
        required=False,
        widget=forms.Textarea(attrs={"rows": 3, "cols": 80}),
        label=_("Reason"),
        help_text=_("Required to reject. Only staff see it."),
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


class ListWithBalances(BoundedChangeList):
    """Adds the balance of the merchant to each row, by one statement for the page."""

    def get_results(self, request: HttpRequest) -> None:
        super().get_results(request)
        balances = ledger.balances({row.merchant_id for row in self.result_list if row.merchant_id})
        for row in self.result_list:
            row.balance = balances.get(row.merchant_id)


class ApprovalAdmin(ReadOnlyAdmin):
    shows_personal_data = True
    list_display = [
        "age", "baht", "kind", "merchant", "destination", "requested_by", "reason", "balance", "debt",
        "status",
    ]  # fmt: skip
    list_display_links = ["age", "baht"]
    list_filter = [StatusFilter]
    list_select_related = ["merchant"]
    search_fields = ["=subject_id"]
    search_help_text = _("Search by id of a withdrawal, refund, return or bank transaction.")
    ordering = ["requested_at", "id"]
    indexed_filters = frozenset({"status"})

    def get_changelist(self, request: HttpRequest, **kwargs: Any) -> type[ChangeList]:
        return ListWithBalances

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
        if form.is_valid() and is_rejected and not form.cleaned_data["note"].strip():
            form.add_error("note", "Enter a reason to reject.")
        if not form.is_valid():
            return self._page(request, approval, form)
        decide = services.reject if is_rejected else services.approve
        try:
            note = form.cleaned_data["note"]
            with recorded(Act.REJECTED if is_rejected else Act.APPROVED, approval, reason=note):
                done = decide(approval.id, handler_for(approval), note=note, now=clock.now())
        except services.NotDecidable as error:
            messages.warning(request, f"{error} Nothing changed.")
            return HttpResponseRedirect(reverse(PAGE_URL, args=[quote(approval.pk)]))
        text = done.get_status_display().lower()
        messages.success(request, f"{done.subject_id} {text}.")
        return HttpResponseRedirect(reverse(LIST_URL))

    def _page(self, request: HttpRequest, approval: Approval, form: DecisionForm) -> HttpResponse:
        own = approval.requested_by == request_context.current().actor
        may_decide = approval.is_waiting and request.user.has_perm(DECIDE_PERMISSION)
        context = {
            **self.admin_site.each_context(request),
            "opts": self.opts,
            "title": f"{approval.get_kind_display()} of {money.display(approval.amount)}",
            "approval": approval,
            "details": _details(approval),
            "form": form if may_decide and not own else None,
            "is_own": may_decide and own,
        }
        return TemplateResponse(request, "admin/approval.html", context)

    @admin.display
    def age(self, row: Approval) -> str:
        return format_duration(clock.now() - row.requested_at)

    @admin.display(description=_("destination"))
    def destination(self, row: Approval) -> str:
        """Without the name: the security log records only views of single approvals."""
        return _account(row)

    @admin.display(description=_("balance"))
    def balance(self, row: Any) -> str | None:
        return money.display(row.balance.available) if row.balance else None

    @admin.display(description=_("debt"))
    def debt(self, row: Any) -> str | None:
        return _debt(row.balance) if row.balance and row.balance.debt else None


def _find(approval_id: str) -> Approval:
    """Raises Http404."""
    if not ids.looks_right(approval_id, "apr_"):
        raise Http404
    return get_object_or_404(Approval.objects.select_related("merchant"), pk=approval_id)


def _details(approval: Approval) -> list[tuple[str, Any]]:
    merchant = approval.merchant
    balance = ledger.balance(merchant.id) if merchant else None
    details = [
        ("Amount", money.display(approval.amount)),
        ("Status", approval.get_status_display()),
        ("Reason", approval.get_reason_display()),
        (
            "Merchant",
            _link("admin:merchants_merchant_change", merchant.id, str(merchant)) if merchant else None,
        ),
        ("Destination", _destination(approval)),
        (
            "Subject",
            _link(SUBJECT_URLS[ApprovalKind(approval.kind)], approval.subject_id, approval.subject_id),
        ),
        ("Requested by", approval.requested_by),
        ("Requested at", approval.requested_at),
        ("Note of the requester", approval.note),
        ("Merchant's balance", money.display(balance.available) if balance else None),
        ("Merchant's debt", _debt(balance) if balance and balance.debt else None),
        ("Decided by", approval.decided_by),
        ("Decided at", approval.decided_at),
        ("Note of the decision", approval.decision_note),
    ]
    return [(label, value) for label, value in details if value not in (None, "")]


def _destination(approval: Approval) -> str:
    name = f"{personal_data.name(approval.account_name)}, " if approval.account_last4 else ""
    return name + _account(approval)


def _account(approval: Approval) -> str:
    if not approval.account_last4:
        return "none" if approval.kind == ApprovalKind.WRITE_OFF else "see the bank"
    last4 = personal_data.MASK * 4 if personal_data.is_hidden() else approval.account_last4
    return f"...{last4} at {bank_label(approval.bank_code)}"


def _debt(balance: Balance) -> str:
    debt = money.display(balance.debt)
    return format_html('<strong style="color: var(--error-fg)">{}</strong>', debt)


def _link(page: str, pk: str, text: str) -> str:
    return format_html('<a href="{}">{}</a>', reverse(page, args=[quote(pk)]), text)


HANDLERS: dict[str, services.ApprovalHandler] = {
    ApprovalKind.WITHDRAWAL: withdrawals.APPROVAL_HANDLER,
    ApprovalKind.REFUND: refunds.APPROVAL_HANDLER,
    **movements.HANDLERS,
}


def handler_for(approval: Approval) -> services.ApprovalHandler:
    return HANDLERS[approval.kind]
