from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from audit_trail.pages import ReadOnlyAdmin
from core.console import admin_columns
from core.console.admin_lists import DateFilter
from merchants.admin_filters import NewestOfMerchantFilter
from qrcodes.models import QrCode


@admin.register(QrCode)
class QrCodeAdmin(ReadOnlyAdmin):
    list_filter = [NewestOfMerchantFilter, DateFilter]
    mode_column = "merchant__mode"
    list_display = ["code_id", "merchant", "payment", "reference1", "created_at"]
    list_select_related = ["merchant", "payment"]
    search_fields = ["=payment__id", "=reference1"]
    export_columns = ("id", "payment", "merchant", "reference1", "created_at")

    def export_id(self, code: QrCode) -> str:
        return code.id

    code_id = admin_columns.column(_("QR code"), lambda code: admin_columns.copyable(code.id))

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return ["code_id", *super().get_fields(request, obj)]
