from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from audit_trail.acts import Act
from audit_trail.recording import recorded
from core import clock, money, personal_data
from core.admin import ReadOnlyAdmin
from refunds import services
from refunds.errors import RefundNotCancelable
from refunds.models import Refund, RefundReversal
from transfers.models import Transfer


@admin.register(Refund)
class RefundAdmin(ReadOnlyAdmin):
    list_display = [
        "id", "merchant", "payment", "baht", "status", "pending_reason", "returned_at", "created_at"
    ]  # fmt: skip
    list_filter = ["status", ("returned_at", admin.EmptyFieldListFilter)]
    list_select_related = ["merchant", "payment"]
    search_fields = ["=id", "=payment__id"]
    actions = ["cancel"]

    @admin.display(description=_("destination"))
    def destination(self, refund: Refund) -> str | None:
        order = Transfer.objects.filter(pk=refund.id).first()
        if order is None:
            return None
        return f"{order.bank_code} {personal_data.account(order.account)}" if order.account else "the card"

    @admin.action(description=_("Cancel refunds that are not submitted"), permissions=["cancel"])
    def cancel(self, request: HttpRequest, chosen: QuerySet[Refund]) -> None:
        for refund in chosen:
            try:
                with recorded(Act.REFUND_CANCELED, refund):
                    services.cancel(merchant=refund.merchant, refund_id=refund.id, now=clock.now())
            except RefundNotCancelable as refusal:
                messages.error(request, f"{refund.id}: {refusal.text}")
            else:
                messages.success(request, f"{refund.id}: canceled.")

    def has_cancel_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("refunds.cancel_refund")

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return [*super().get_fields(request, obj), "pending_reason", "destination"]


@admin.register(RefundReversal)
class RefundReversalAdmin(ReadOnlyAdmin):
    list_display = ["reversal_id", "payment", "baht", "refunded_baht", "route", "created_at"]
    list_select_related = ["payment"]
    search_fields = ["=reversal_id", "=payment__id"]

    @admin.display(description=_("shown by refunds"))
    def refunded_baht(self, reversal: RefundReversal) -> str:
        return money.display(reversal.refunded_amount)
