from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse

from approvals.models import Approval, PayoutAccount, PayoutPolicy
from console import (
    lockouts,
    staff_admin,  # noqa: F401 (registers staff and roles)
)
from console.approval_admin import ApprovalAdmin
from console.models import Heartbeat, LoginFailures
from console.payout_admin import PayoutAccountAdmin, PayoutPolicyAdmin
from console.timeline import staff
from core.admin import ReadOnlyAdmin
from payments.admin import PaymentAdmin
from payments.models import Payment

admin.site.site_header = "Thai QR Payments"
admin.site.site_title = "Thai QR Payments"
admin.site.site_url = "/docs"


admin.site.register(Approval, ApprovalAdmin)
admin.site.register(PayoutAccount, PayoutAccountAdmin)
admin.site.register(PayoutPolicy, PayoutPolicyAdmin)


@admin.register(Heartbeat)
class HeartbeatAdmin(ReadOnlyAdmin):
    list_display = ["name", "at"]


@admin.register(LoginFailures)
class LoginFailuresAdmin(ReadOnlyAdmin):
    list_display = ["subject", "failures", "ends_at"]
    actions = ["lift"]

    @admin.action(description="Lift the lock-out", permissions=["lift"])
    def lift(self, request: HttpRequest, chosen: QuerySet[LoginFailures]) -> None:
        for row in chosen:
            lockouts.lift(row.subject)
            self.log_change(request, row, "lock-out lifted")
        messages.success(request, "Lifted.")

    def has_lift_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("console.lift_lockout")


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
