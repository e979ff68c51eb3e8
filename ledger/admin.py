from typing import Any

from django.contrib import admin
from django.db.models import BigIntegerField, F, OuterRef, Q, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from audit_trail.pages import ReadOnlyAdmin
from core.console import admin_columns
from core.console.admin_lists import sandbox_is_test
from ledger.models import Account, Entry, Journal, PendingEntry


def _of_mode(rows: Any, mode: str, account: str = "") -> Any:
    """By the merchant of the account, or the name of its bank or acquirer. account: the path to it."""
    without_merchant = Q(**{f"{account}merchant": None})
    of_merchants = Q(**{f"{account}merchant__mode": mode})
    return rows.filter(of_merchants | without_merchant & sandbox_is_test(f"{account}id", mode))


@admin.register(Account)
class AccountAdmin(ReadOnlyAdmin):
    mode_column = "merchant__mode"
    list_display = ["id", "type", "merchant", "baht"]
    export_columns = ("id", "type", "merchant", "balance")
    list_filter = ["type"]
    list_select_related = ["merchant"]
    search_fields = ["=id", "=merchant__id"]
    fields = ["id", "type", "merchant", "rolled_up_balance", "baht"]
    readonly_fields = ["baht"]
    baht = admin_columns.baht(_("balance"), lambda account: account.held)

    def rows_of_mode(self, rows: Any, mode: str) -> Any:
        return _of_mode(rows, mode)

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        pending = (
            PendingEntry.objects.filter(account_id=OuterRef("pk"))
            .values("account_id")
            .annotate(sum=Sum("amount"))
        )
        held = F("rolled_up_balance") + Coalesce(
            Subquery(pending.values("sum"), output_field=BigIntegerField()), 0
        )
        found: QuerySet[Any] = super().get_queryset(request).annotate(held=held)
        return found

    def export_balance(self, account: Any) -> int:
        return int(account.held)


class EntryInline(admin.TabularInline[Any, Any]):
    model = Entry
    extra = 0
    can_delete = False
    fields = ["account", "baht"]
    readonly_fields = ["baht"]
    baht = admin_columns.baht(_("amount"), lambda entry: entry.amount)


@admin.register(Journal)
class JournalAdmin(ReadOnlyAdmin):
    list_display = ["id", "type", "subject_id", "baht", "created_at"]
    list_filter = ["type"]
    search_fields = ["=subject_id"]
    inlines = [EntryInline]


@admin.register(Entry)
class EntryAdmin(ReadOnlyAdmin):
    mode_column = "account__merchant__mode"
    list_display = ["id", "account", "amount", "journal", "created_at"]
    list_select_related = ["journal"]
    search_fields = ["=account__id", "=journal__subject_id"]

    def rows_of_mode(self, rows: Any, mode: str) -> Any:
        return _of_mode(rows, mode, "account__")
