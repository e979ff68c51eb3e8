from typing import Any

from django.contrib import admin
from django.db.models import BigIntegerField, F, OuterRef, QuerySet, Subquery, Sum
from django.db.models.functions import Coalesce
from django.http import HttpRequest

from core import money
from core.admin import ReadOnlyAdmin
from transactions.models import Account, Entry, Journal, Tally, Transaction, Uncounted, Unfolded


@admin.register(Transaction)
class TransactionAdmin(ReadOnlyAdmin):
    list_display = ["id", "merchant", "payment_id", "type", "status", "amount", "created_at"]
    list_filter = ["type", "status"]
    list_select_related = ["merchant"]
    search_fields = ["=id", "=payment_id"]


@admin.register(Account)
class AccountAdmin(ReadOnlyAdmin):
    list_display = ["id", "kind", "merchant", "baht"]
    list_filter = ["kind"]
    list_select_related = ["merchant"]
    search_fields = ["=id", "=merchant__id"]
    fields = ["id", "kind", "merchant", "settled", "baht"]
    readonly_fields = ["baht"]

    def get_queryset(self, request: HttpRequest) -> QuerySet[Any]:
        waiting = (
            Unfolded.objects.filter(account_id=OuterRef("pk"))
            .values("account_id")
            .annotate(sum=Sum("amount"))
        )
        held = F("settled") + Coalesce(Subquery(waiting.values("sum"), output_field=BigIntegerField()), 0)
        found: QuerySet[Any] = super().get_queryset(request).annotate(held=held)
        return found

    @admin.display(description="holds")
    def baht(self, account: Any) -> str:
        return money.display(account.held)


class EntryInline(admin.TabularInline[Any, Any]):
    """The lines of a journal."""

    model = Entry
    extra = 0
    can_delete = False
    fields = ["account", "baht"]
    readonly_fields = ["baht"]

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False

    @admin.display(description="amount")
    def baht(self, entry: Entry) -> str:
        return money.display(entry.amount)


@admin.register(Journal)
class JournalAdmin(ReadOnlyAdmin):
    list_display = ["id", "fact", "subject_id", "baht", "created_at"]
    list_filter = ["fact"]
    search_fields = ["=subject_id"]
    inlines = [EntryInline]

    @admin.display(description="amount")
    def baht(self, journal: Journal) -> str:
        return money.display(journal.amount)


@admin.register(Entry)
class EntryAdmin(ReadOnlyAdmin):
    list_display = ["id", "account", "amount", "journal", "created_at"]
    list_select_related = ["journal"]
    search_fields = ["=account__id", "=journal__subject_id"]


@admin.register(Unfolded)
class UnfoldedAdmin(ReadOnlyAdmin):
    list_display = ["entry", "account_id", "amount"]
    list_select_related = ["entry"]
    search_fields = ["=account_id"]


@admin.register(Tally)
class TallyAdmin(ReadOnlyAdmin):
    list_display = ["merchant_id", "span", "begins_at", "type", "status", "count"]
    list_filter = ["span", "type", "status"]
    search_fields = ["=merchant_id"]


@admin.register(Uncounted)
class UncountedAdmin(ReadOnlyAdmin):
    list_display = ["merchant_id", "minute", "type", "status", "change"]
    search_fields = ["=merchant_id"]
