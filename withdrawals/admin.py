"""Withdrawals in the console. Staff approve them in `console.approvals.approval_admin`."""

from typing import Any

from django.contrib import admin
from django.db.models import Case, QuerySet, Value, When
from django.http import HttpRequest
from django.utils.translation import gettext, gettext_lazy as _

from audit_trail.act_pages import ActingAdmin
from audit_trail.pages import ReadOnlyAdmin
from core.console import admin_columns
from core.console.admin_filters import AmountFilter
from core.console.admin_lists import DateFilter
from ledger import services as ledger
from merchants.admin_filters import MerchantFilter
from withdrawals.models import PayoutNight, PayoutSchedule, Withdrawal, WithdrawalStatus
from withdrawals.withdrawal_acts import WITHDRAWAL_ACTS


class HeldFilter(admin.SimpleListFilter):
    title, parameter_name = _("hold"), "hold"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        return [("held", gettext("held: the merchant has a debt"))]

    def queryset(self, request: Any, queryset: Any) -> Any:
        return queryset.held(ledger.debts()) if self.value() else queryset


class WithdrawalAdmin(ActingAdmin):
    """The list and pages of withdrawals. `console` registers a subclass."""

    shows_personal_data = True
    mode_column = "merchant__mode"
    list_display = [
        "id", "merchant", "status", "awaiting_approval", "held", "baht", "bank_code", "account_last4",
        "created_at",
    ]  # fmt: skip
    list_filter = [MerchantFilter, HeldFilter, "status", DateFilter, AmountFilter, "bank"]
    list_select_related = ["merchant"]
    search_fields = ["=id", "=reference", "=bank_reference", "=merchant__id"]
    scanned_fields = ("amount", "reference", "account_last4")
    indexed_filters = frozenset({"hold"})
    object_acts = WITHDRAWAL_ACTS
    merchant_owes = admin_columns.baht(_("merchant debt"), lambda row: row.debt or None)

    @admin.display(description=_("held"))
    def held(self, withdrawal: Withdrawal) -> str | None:
        is_held = withdrawal.status == WithdrawalStatus.PENDING and withdrawal.debt  # type: ignore[attr-defined]
        return admin_columns.badge("held", "Yes") if is_held else None

    def get_queryset(self, request: HttpRequest) -> QuerySet[Withdrawal]:
        debts = [When(merchant=merchant_id, then=Value(debt)) for merchant_id, debt in ledger.debts().items()]
        found: QuerySet[Withdrawal] = super().get_queryset(request)
        return found.annotate(debt=Case(*debts, default=Value(0)))

    def get_fields(self, request: Any, obj: Any = None) -> Any:
        plain = admin_columns.readable_fields(Withdrawal)
        return [*plain, "held", "merchant_owes"]


@admin.register(PayoutSchedule)
class PayoutScheduleAdmin(ReadOnlyAdmin):
    """Staff set and stop them on the page of the merchant."""

    mode_column = "merchant__mode"
    list_display = ["merchant", "days", "time", "float_amount", "account", "due_at"]
    list_select_related = ["merchant", "account"]
    search_fields = ["=merchant__id"]
    sortable_by = ("due_at",)


@admin.register(PayoutNight)
class PayoutNightAdmin(ReadOnlyAdmin):
    """What became of the nights of all merchants."""

    mode_column = "merchant__mode"
    list_display = ["day", "merchant", "baht", "skip_reason", "created_at"]
    list_filter = ["skip_reason"]
    list_select_related = ["merchant"]
    search_fields = ["=merchant__id"]
    ordering = ["-day", "-id"]
