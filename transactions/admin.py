from django.contrib import admin

from core.admin import ReadOnlyAdmin
from transactions.models import CountDelta, Transaction, TransactionCount


@admin.register(Transaction)
class TransactionAdmin(ReadOnlyAdmin):
    list_display = ["id", "merchant", "payment_id", "type", "status", "amount", "created_at"]
    list_filter = ["type", "status"]
    list_select_related = ["merchant"]
    search_fields = ["=id", "=payment_id"]


@admin.register(TransactionCount)
class TransactionCountAdmin(ReadOnlyAdmin):
    list_display = ["merchant_id", "bucket", "starts_at", "type", "status", "count"]
    list_filter = ["bucket", "type", "status"]
    search_fields = ["=merchant_id"]


@admin.register(CountDelta)
class CountDeltaAdmin(ReadOnlyAdmin):
    list_display = ["merchant_id", "minute", "type", "status", "delta"]
    search_fields = ["=merchant_id"]
