from collections.abc import Callable
from datetime import datetime
from typing import Any

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from allauth.socialaccount.models import SocialAccount, SocialApp, SocialToken
from allauth.usersessions.models import UserSession
from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.utils.translation import gettext_lazy as _

from approvals.models import Approval, PayoutAccount, PayoutPolicy
from audit_trail.act_pages import ActingAdmin
from console.approvals.approval_admin import ApprovalAdmin
from console.approvals.payout_admin import PayoutAccountAdmin, PayoutPolicyAdmin
from console.merchants.merchant_page import MerchantPageAdmin
from console.payments import payment_page, summaries
from console.payments.payment_acts import PAYMENT_ACTS
from console.payments.summaries import Summary
from console.people import staff_admin  # noqa: F401 (registers staff and roles)
from core import clock
from core.console import admin_columns
from merchants.models import Merchant
from payments.admin import PaymentAdmin
from payments.models import Payment
from refunds.admin import RefundAdmin
from refunds.models import Refund
from transfers.models import Transfer
from withdrawals.admin import WithdrawalAdmin
from withdrawals.models import Withdrawal

admin.site.register(Approval, ApprovalAdmin)
admin.site.register(Merchant, MerchantPageAdmin)
admin.site.register(PayoutAccount, PayoutAccountAdmin)
admin.site.register(PayoutPolicy, PayoutPolicyAdmin)

# Internals of allauth, with secrets.
for model in (EmailAddress, Authenticator, UserSession, SocialAccount, SocialApp, SocialToken):
    admin.site.unregister(model)


@admin.register(Payment)
class PaymentWithTimelineAdmin(PaymentAdmin):
    """The page that shows all of a payment."""

    change_form_template = "admin/payment.html"
    object_acts = PAYMENT_ACTS

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        """Django has checked the permission before it calls this."""
        context |= payment_page.context(request, kwargs["obj"], clock.now())
        return super().render_change_form(request, context, *args, **kwargs)


class OutgoingPageAdmin(ActingAdmin):
    """A page that begins with how a refund or withdrawal stands, and shows no empty values."""

    change_form_template = "admin/outgoing.html"

    summary_of: Callable[[Any, datetime], Summary]

    @admin.display(description=_("order to the bank"))
    def order(self, row: Any) -> Any:
        """The state of the transfer, with a link to its history."""
        found = Transfer.objects.filter(pk=row.pk).first()
        if found is None:
            return None
        state = admin_columns.badge(found.state, found.get_state_display())
        return admin_columns.link_to(Transfer, found.pk, state)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        names = [*super().get_fields(request, obj), "order"]
        return names if obj is None else [name for name in names if self.has_value(obj, name)]

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        context |= summaries.context(request, self.summary_of(kwargs["obj"], clock.now()))
        return super().render_change_form(request, context, *args, **kwargs)


@admin.register(Refund)
class RefundPageAdmin(OutgoingPageAdmin, RefundAdmin):
    summary_of = staticmethod(summaries.of_refund)


@admin.register(Withdrawal)
class WithdrawalPageAdmin(OutgoingPageAdmin, WithdrawalAdmin):
    summary_of = staticmethod(summaries.of_withdrawal)
