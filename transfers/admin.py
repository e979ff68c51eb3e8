from typing import Any

from django.contrib import admin
from django.db.models import QuerySet
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.timesince import timesince
from django.utils.timezone import localtime

from core import clock, money, vault
from core.admin import ReadOnlyAdmin
from transfers.models import OPEN, CircuitBreaker, Step, Transfer
from transfers.schedule import OVERDUE

STEPS_SHOWN = 50


class Overdue(admin.SimpleListFilter):
    """Those that take so long that somebody has to ask the bank."""

    title, parameter_name = "end", "end"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        return [("overdue", "overdue")]

    def queryset(self, request: Any, queryset: Any) -> Any:
        return queryset.open_since(clock.now() - OVERDUE) if self.value() else queryset


class TransferAdmin(ReadOnlyAdmin):
    """How to read them; `receipts`, which knows whose each is, adds what staff may do and registers it."""

    shows_personal_data = True

    list_display = ["id", "purpose", "route", "baht", "state", "inquiries", "open_for", "created_at"]
    list_filter = [Overdue, "state", "purpose", "route"]
    search_fields = ["=id", "=bank_reference"]
    indexed_filters = frozenset({"end"})

    @admin.display(description="amount")
    def baht(self, transfer: Transfer) -> str:
        return money.display(transfer.amount)

    @admin.display(description="open for")
    def open_for(self, transfer: Transfer) -> str | None:
        return timesince(transfer.created_at, clock.now()) if transfer.state in OPEN else None

    @admin.display(description="account")
    def account_masked(self, transfer: Transfer) -> str | None:
        return vault.masked(transfer.account or None)

    @admin.display(description="what happened")
    def happened(self, transfer: Transfer) -> SafeString:
        told = (
            (f"{localtime(step.at):%Y-%m-%d %H:%M:%S}", step.what, step.said, step.actor, step.request_id)
            for step in _steps(transfer)
        )
        return format_html_join("", "<div>{} {} {} {} {}</div>", told)

    def get_fields(self, request: Any, obj: Any = None) -> Any:
        plain = [field.name for field in Transfer._meta.concrete_fields if field.name != "account_sealed"]
        return [*plain, "account_masked", "happened"]


@admin.register(Step)
class StepAdmin(ReadOnlyAdmin):
    list_display = ["transfer_id", "what", "said", "actor", "request_id", "at"]
    list_filter = ["what"]
    search_fields = ["=transfer__id"]
    ordering = ["-id"]


@admin.register(CircuitBreaker)
class CircuitBreakerAdmin(ReadOnlyAdmin):
    list_display = ["route", "merchant_id", "silences", "openings", "since", "open_until"]


def _steps(transfer: Transfer) -> QuerySet[Step]:
    """The last, the newest first."""
    return transfer.steps.order_by("-at", "-pk")[:STEPS_SHOWN]
