from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _

from approvals.models import Approval, PayoutAccount, PayoutPolicy
from console import (
    lockouts,
    payment_page,
    staff_admin,  # noqa: F401 (registers staff and roles)
)
from console.approval_admin import ApprovalAdmin
from console.models import LoginThrottle
from console.payment_acts import PAYMENT_ACTS
from console.payout_admin import PayoutAccountAdmin, PayoutPolicyAdmin
from core import clock
from core.admin import ReadOnlyAdmin
from payments.admin import PaymentAdmin
from payments.models import Payment

admin.site.register(Approval, ApprovalAdmin)
admin.site.register(PayoutAccount, PayoutAccountAdmin)
admin.site.register(PayoutPolicy, PayoutPolicyAdmin)


@admin.register(LoginThrottle)
class LoginThrottleAdmin(ReadOnlyAdmin):
    list_display = ["subject", "failure_count", "expires_at"]
    actions = ["lift"]

    @admin.action(description=_("Lift the lockout"), permissions=["lift"])
    def lift(self, request: HttpRequest, selected: QuerySet[LoginThrottle]) -> None:
        for row in selected:
            lockouts.lift(row.subject)
        messages.success(request, "Lifted.")

    def has_lift_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("console.lift_lockout")


@admin.register(Payment)
class PaymentWithTimelineAdmin(PaymentAdmin):
    """The page that shows all of a payment."""

    change_form_template = "admin/payment.html"
    object_acts = PAYMENT_ACTS

    def render_change_form(
        self,
        request: HttpRequest,
        context: dict[str, Any],
        add: bool = False,
        change: bool = False,
        form_url: str = "",
        obj: Payment | None = None,
    ) -> HttpResponse:
        """Django has checked the permission before it calls this."""
        assert obj is not None, "payments cannot be added here"
        context |= payment_page.context(request, obj, clock.now())
        return super().render_change_form(
            request, context, add=add, change=change, form_url=form_url, obj=obj
        )
