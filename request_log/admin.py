"""Console pages of the request log."""

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from core import personal_data
from core.admin import ReadOnlyAdmin
from core.admin_lists import DateFilter
from merchants.admin_filters import NewestOfMerchantFilter
from request_log.models import RequestRecord


class OwnRequestsFilter(NewestOfMerchantFilter):
    lookup = "merchant_id"  # the column is no foreign key


@admin.register(RequestRecord)
class RequestRecordAdmin(ReadOnlyAdmin):
    shows_personal_data = True
    list_display = [
        "id", "created_at", "merchant_id", "method", "route", "status", "error_code", "duration_ms",
        "request_id",
    ]  # fmt: skip
    list_filter = [OwnRequestsFilter, DateFilter, "method", "status", "idempotency"]
    search_fields = ["=id", "=request_id", "=payment_id"]
    readonly_fields = ["request_text", "response_text"]

    @admin.display(description=_("request"))
    def request_text(self, record: RequestRecord) -> str:
        return personal_data.message(record.request_body)

    @admin.display(description=_("Response"))
    def response_text(self, record: RequestRecord) -> str:
        return personal_data.message(record.response_body)
