from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse

from console.models import Heartbeat
from console.timeline import staff
from core.admin import ReadOnlyAdmin
from payments.admin import PaymentAdmin
from payments.models import Payment

admin.site.site_header = "Thai QR Payments"
admin.site.site_title = "Thai QR Payments"
admin.site.site_url = "/docs"


@admin.register(Heartbeat)
class HeartbeatAdmin(ReadOnlyAdmin):
    list_display = ["name", "at"]


@admin.register(Payment)
class PaymentPage(PaymentAdmin):
    """Each with its timeline."""

    change_form_template = "admin/payment.html"

    def change_view(
        self, request: HttpRequest, object_id: str, form_url: str = "", extra_context: Any = None
    ) -> HttpResponse:
        # Called by the template: by then it is certain that they may see it.
        shown = {"timeline": lambda: staff.page(object_id, request.GET.get("from", ""))}
        return super().change_view(request, object_id, form_url, (extra_context or {}) | shown)
