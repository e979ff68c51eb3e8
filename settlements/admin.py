from django.contrib import admin

from audit_trail.pages import ReadOnlyAdmin
from settlements.models import SettledItem


@admin.register(SettledItem)
class SettledItemAdmin(ReadOnlyAdmin):
    mode_column = "transfer__acquirer"
    list_display = ["transfer", "kind", "reference", "payment", "net_amount", "description"]
    list_select_related = ["transfer", "payment"]
    search_fields = ["=reference", "=payment__id", "=transfer__id", "=settlement__id"]
    ordering = ["-id"]
