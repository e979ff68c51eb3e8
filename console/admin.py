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

    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Payment | None = None,
    ) -> HttpResponse:
        """Called when it is certain that they may see the payment."""
        assert obj is not None, "nobody adds payments here"
        context["page"] = staff.page(obj, request.GET.get("from", ""))
        return super().render_change_form(request, context, add, change, form_url, obj)
