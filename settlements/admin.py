from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from audit_trail.pages import ReadOnlyAdmin
from core import money
from settlements.models import SettledItem


@admin.register(SettledItem)
class SettledItemAdmin(ReadOnlyAdmin):
    mode_column = "transfer__acquirer"
    list_display = ["transfer", "kind", "reference", "payment", "net_baht", "description"]
    list_select_related = ["transfer", "payment"]
    search_fields = ["=reference", "=payment__id", "=transfer__id", "=settlement__id"]
    ordering = ["-id"]

    @admin.display(description=_("net"))
    def net_baht(self, item: SettledItem) -> str:
        return money.display(item.net_amount)
