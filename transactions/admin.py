from django.contrib import admin

from audit_trail.pages import ReadOnlyAdmin
from core.console.admin_filters import AmountFilter
from core.console.admin_lists import DateFilter
from merchants.admin_filters import MerchantFilter
from transactions.models import Transaction


@admin.register(Transaction)
class TransactionAdmin(ReadOnlyAdmin):
    mode_column, kind_columns = "merchant__mode", ("type", "status")
    list_display = ["id", "merchant", "payment_id", "type", "status", "amount", "created_at"]
    list_filter = [MerchantFilter, "type", "status", DateFilter, AmountFilter]
    list_select_related = ["merchant"]
    search_fields = ["=id", "=payment_id"]
    scanned_fields = ("amount",)
