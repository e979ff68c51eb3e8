from django.contrib import admin

from core.admin import ReadOnlyAdmin
from transactions.models import Transaction


@admin.register(Transaction)
class TransactionAdmin(ReadOnlyAdmin):
    list_display = ["id", "merchant", "payment_id", "type", "status", "amount", "created_at"]
    list_filter = ["type", "status"]
    list_select_related = ["merchant"]
    search_fields = ["=id", "=payment_id"]
