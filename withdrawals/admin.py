"""Withdrawals for staff: read them, cancel them. Approving is in `console.approval_admin`."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from core import clock, money
from core.admin import ReadOnlyAdmin
from withdrawals import services
from withdrawals.errors import WithdrawalNotCancelable
from withdrawals.models import Withdrawal


@admin.register(Withdrawal)
class WithdrawalAdmin(ReadOnlyAdmin):
    shows_personal_data = True
    list_display = [
        "id",
        "merchant",
        "status",
        "awaiting_approval",
        "baht",
        "bank_code",
        "account_last4",
        "created_at",
    ]
    list_filter = ["status", "bank"]
    list_select_related = ["merchant"]
    search_fields = ["=id", "=reference", "=bank_reference", "=merchant__id"]
    actions = ["cancel"]

    @admin.display(description="amount", ordering="amount")
    def baht(self, withdrawal: Withdrawal) -> str:
        return money.display(withdrawal.amount)

    def get_fields(self, request: Any, obj: Any = None) -> Any:
        return [field.name for field in Withdrawal._meta.concrete_fields if field.name != "account_sealed"]

    @admin.action(description="Cancel for the merchant", permissions=["cancel"])
    def cancel(self, request: HttpRequest, chosen: QuerySet[Withdrawal]) -> None:
        for withdrawal in chosen:
            try:
                services.cancel(withdrawal_id=withdrawal.id, now=clock.now())
            except WithdrawalNotCancelable:
                messages.warning(request, f"{withdrawal.id} was past that: nothing changed.")
            else:
                self.log_change(request, withdrawal, "canceled")
                messages.success(request, f"{withdrawal.id} canceled.")

    def has_cancel_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("withdrawals.cancel_withdrawal")
