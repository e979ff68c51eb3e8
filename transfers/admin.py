from typing import Any

from django.contrib import admin

from core import clock, money, vault
from core.admin import ReadOnlyAdmin
from transfers.models import State, Transfer
from transfers.schedule import OVERDUE


class Overdue(admin.SimpleListFilter):
    """Those whose bank has been silent for so long that somebody has to ask it."""

    title, parameter_name = "bank's word", "word"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        return [("overdue", "overdue")]

    def queryset(self, request: Any, queryset: Any) -> Any:
        return queryset.told_before(clock.now() - OVERDUE) if self.value() else queryset


@admin.register(Transfer)
class TransferAdmin(ReadOnlyAdmin):
    list_display = ["id", "purpose", "route", "baht", "state", "inquiries", "waits_since", "created_at"]
    list_filter = [Overdue, "state", "purpose", "route"]
    search_fields = ["=id", "=bank_reference"]

    @admin.display(description="amount", ordering="amount")
    def baht(self, transfer: Transfer) -> str:
        return money.display(transfer.amount)

    @admin.display(description="waits for the bank since", ordering="told_at")
    def waits_since(self, transfer: Transfer) -> Any:
        return transfer.told_at if transfer.state == State.TOLD else None

    @admin.display(description="account")
    def account_masked(self, transfer: Transfer) -> str | None:
        return vault.masked(transfer.account or None)

    def get_fields(self, request: Any, obj: Any = None) -> Any:
        plain = [field.name for field in Transfer._meta.concrete_fields if field.name != "account_sealed"]
        return [*plain, "account_masked"]
