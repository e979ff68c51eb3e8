"""Console pages of the request log."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from audit_trail.pages import ReadOnlyAdmin
from core import plain_text
from core.console import personal_data
from core.console.admin_columns import column
from core.console.admin_lists import DateFilter
from merchants.admin_filters import NewestOfMerchantFilter
from merchants.models import Merchant
from request_log import services
from request_log.models import HAS_PAYMENT, HAS_REQUEST_ID, RequestRecord, id_of_request
from request_log.serializers import STATUS_CLASSES


class OwnRequestsFilter(NewestOfMerchantFilter):
    lookup = "merchant_id"  # the column is no foreign key


class StatusFilter(admin.SimpleListFilter):
    """Filters by the class of the answer."""

    title, parameter_name = _("status"), "status"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        return [(each, each) for each in STATUS_CLASSES]

    def queryset(self, request: HttpRequest, queryset: Any) -> Any:
        chosen = self.value()
        return queryset.filter(**services.of_class(chosen)) if chosen in STATUS_CLASSES else queryset


@admin.register(RequestRecord)
class RequestRecordAdmin(ReadOnlyAdmin):
    shows_personal_data = True
    mode_column = "merchant__mode"
    list_display = [
        "id", "created_at", "merchant_id", "method", "route", "status", "error_code", "duration_ms",
        "request_id",
    ]  # fmt: skip
    list_filter = [OwnRequestsFilter, DateFilter, "method", StatusFilter, "idempotency"]
    search_fields = ["=id", "=request_id", "=payment_id"]
    search_conditions = {"=request_id": HAS_REQUEST_ID, "=payment_id": HAS_PAYMENT}
    readonly_fields = ["request_text", "response_text"]

    def rows_of_mode(self, rows: Any, mode: str) -> Any:
        return rows.filter(merchant_id__in=Merchant.objects.filter(mode=mode).values("pk"))

    def get_search_results(self, request: HttpRequest, queryset: Any, search_term: str) -> Any:
        """Also by a request id of ours, which is no column."""
        queryset = self.of_mode(request, queryset)
        found, may_repeat = super().get_search_results(request, queryset, search_term)
        return found | queryset.filter(pk=id_of_request(plain_text.visible(search_term))), may_repeat

    request_text = column(_("request"), lambda record: personal_data.message(record.request_body))
    response_text = column(_("Response"), lambda record: personal_data.message(record.response_body))
