"""Withdrawals for staff: read them, and say yes or no to those that wait for it."""

from collections.abc import Callable
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest

from core import clock, money
from core.admin import ReadOnlyAdmin
from withdrawals import services
from withdrawals.errors import AlreadyDecided, WithdrawalNotCancelable
from withdrawals.models import Withdrawal


class WaitsForStaff(admin.SimpleListFilter):
    title, parameter_name = "approval", "approval"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        return [("waits", "waits for staff")]

    def queryset(self, request: Any, queryset: Any) -> Any:
        return queryset.for_staff() if self.value() else queryset


@admin.register(Withdrawal)
class WithdrawalAdmin(ReadOnlyAdmin):
    shows_personal_data = True
    list_display = ["id", "merchant", "status", "waits", "baht", "bank_code", "account_last4", "created_at"]
    list_filter = [WaitsForStaff, "status", "bank"]
    list_select_related = ["merchant"]
    search_fields = ["=id", "=reference", "=bank_reference", "=merchant__id"]
    actions = ["approve", "reject", "cancel"]

    @admin.display(description="amount", ordering="amount")
    def baht(self, withdrawal: Withdrawal) -> str:
        return money.display(withdrawal.amount)

    @admin.display(description="waits for staff", boolean=True)
    def waits(self, withdrawal: Withdrawal) -> bool:
        return withdrawal.waits_for_staff

    def get_fields(self, request: Any, obj: Any = None) -> Any:
        return [field.name for field in Withdrawal._meta.concrete_fields if field.name != "account_sealed"]

    @admin.action(description="Approve: let the money go out", permissions=["decide"])
    def approve(self, request: HttpRequest, chosen: QuerySet[Withdrawal]) -> None:
        by, now = request.user.get_username(), clock.now()
        self._act(request, chosen, "approved", lambda id: services.approve(withdrawal_id=id, by=by, now=now))

    @admin.action(description="Reject: the merchant gets the money back", permissions=["decide"])
    def reject(self, request: HttpRequest, chosen: QuerySet[Withdrawal]) -> None:
        by, now = request.user.get_username(), clock.now()
        self._act(request, chosen, "rejected", lambda id: services.reject(withdrawal_id=id, by=by, now=now))

    @admin.action(description="Cancel for the merchant", permissions=["cancel"])
    def cancel(self, request: HttpRequest, chosen: QuerySet[Withdrawal]) -> None:
        now = clock.now()
        self._act(request, chosen, "canceled", lambda id: services.cancel(withdrawal_id=id, now=now))

    def has_decide_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("withdrawals.decide_withdrawal")

    def has_cancel_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("withdrawals.cancel_withdrawal")

    def _act(
        self,
        request: HttpRequest,
        chosen: QuerySet[Withdrawal],
        done: str,
        act: Callable[[str], object],
    ) -> None:
        """Do it to each and say so; what is past it stays as it is, however often somebody clicks."""
        for withdrawal in chosen:
            try:
                act(withdrawal.id)
            except (AlreadyDecided, WithdrawalNotCancelable):
                messages.warning(request, f"{withdrawal.id} was past that: nothing changed.")
            else:
                self.log_change(request, withdrawal, done)
                messages.success(request, f"{withdrawal.id} {done}.")
