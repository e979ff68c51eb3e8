"""Withdrawals in the console. Staff approve them in `console.approval_admin`."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import Case, QuerySet, Value, When
from django.http import HttpRequest
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from audit_trail.acts import Act
from audit_trail.recording import recorded
from core import clock, money
from core.admin import ReadOnlyAdmin
from ledger import services as ledger
from withdrawals import services
from withdrawals.errors import WithdrawalNotCancelable
from withdrawals.models import Withdrawal, WithdrawalStatus


class HeldFilter(admin.SimpleListFilter):
    title, parameter_name = _("hold"), "hold"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        return [("held", gettext("held: the merchant has a debt"))]

    def queryset(self, request: Any, queryset: Any) -> Any:
        return queryset.held(ledger.debts()) if self.value() else queryset


@admin.register(Withdrawal)
class WithdrawalAdmin(ReadOnlyAdmin):
    shows_personal_data = True
    list_display = [
        "id", "merchant", "status", "awaiting_approval", "held", "baht", "bank_code", "account_last4",
        "created_at",
    ]  # fmt: skip
    list_filter = [HeldFilter, "status", "bank"]
    list_select_related = ["merchant"]
    search_fields = ["=id", "=reference", "=bank_reference", "=merchant__id"]
    indexed_filters = frozenset({"hold"})
    actions = ["cancel"]

    @admin.display(description=_("held"), boolean=True)
    def held(self, withdrawal: Withdrawal) -> bool:
        return bool(withdrawal.status == WithdrawalStatus.PENDING and withdrawal.debt)  # type: ignore[attr-defined]

    @admin.display(description=_("merchant debt"))
    def merchant_owes(self, withdrawal: Withdrawal) -> str:
        return money.display(withdrawal.debt)  # type: ignore[attr-defined]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Withdrawal]:
        debts = [When(merchant=merchant_id, then=Value(debt)) for merchant_id, debt in ledger.debts().items()]
        found: QuerySet[Withdrawal] = super().get_queryset(request)
        return found.annotate(debt=Case(*debts, default=Value(0)))

    def get_fields(self, request: Any, obj: Any = None) -> Any:
        plain = [field.name for field in Withdrawal._meta.concrete_fields if field.name != "account_sealed"]
        return [*plain, "held", "merchant_owes"]

    @admin.action(description=_("Cancel for the merchant"), permissions=["cancel"])
    def cancel(self, request: HttpRequest, chosen: QuerySet[Withdrawal]) -> None:
        for withdrawal in chosen:
            try:
                with recorded(Act.WITHDRAWAL_CANCELED, withdrawal):
                    services.cancel(withdrawal_id=withdrawal.id, now=clock.now())
            except WithdrawalNotCancelable:
                messages.warning(request, f"{withdrawal.id} cannot be canceled any more. Nothing changed.")
            else:
                messages.success(request, f"{withdrawal.id} canceled.")

    def has_cancel_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("withdrawals.cancel_withdrawal")
