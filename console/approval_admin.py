"""The console pages of approvals: outgoing money of all kinds that waits for a second person."""

from collections.abc import Sequence
from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.utils.html import format_html
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from approvals import services
from approvals.models import Approval, ApprovalStatus
from audit_trail.act_pages import ActingAdmin
from console import approval_modes, approval_page
from console.approval_acts import APPROVAL_ACTS
from core import admin_lists, clock, money
from core.admin_filters import ModeFilter
from ledger import services as ledger
from merchants.models import Mode


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


class ApprovalAdmin(ActingAdmin):
    object_acts = APPROVAL_ACTS
    returns_to_list = True
    explains_personal_data = True
    shows_personal_data = True
    change_form_template = "admin/approval.html"
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

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        approval = kwargs["obj"]
        on_approval, on_rejection = approval_page.effects(approval)
        title = {"kind": approval.get_kind_display(), "amount": money.display(approval.amount)}
        context |= {
            "title": gettext("%(kind)s of %(amount)s") % title,
            "details": approval_page.details(approval),
            "on_approval": on_approval,
            "on_rejection": on_rejection,
            "own": services.own_request(approval) if approval.is_waiting else "",
        }
        return super().render_change_form(request, context, *args, **kwargs)

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
