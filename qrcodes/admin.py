from django.contrib import admin

from audit_trail.pages import ReadOnlyAdmin
from core.console.admin_filters import ModeFilter
from core.console.admin_lists import DateFilter
from merchants.admin_filters import NewestOfMerchantFilter
from qrcodes.models import QrCode


@admin.register(QrCode)
class QrCodeAdmin(ReadOnlyAdmin):
    list_filter = [NewestOfMerchantFilter, DateFilter, ModeFilter]
    list_display = ["id", "merchant", "payment", "reference1", "created_at"]
    list_select_related = ["merchant", "payment"]
    search_fields = ["=payment__id", "=reference1"]
