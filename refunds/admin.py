from collections.abc import Iterable
from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext, gettext_lazy as _

from audit_trail.act_pages import ActingAdmin
from audit_trail.pages import ReadOnlyAdmin
from core import clock
from core.console import personal_data
from core.console.admin_filters import AmountFilter
from core.console.admin_lists import DateFilter
from merchants.admin_filters import MerchantFilter
from refunds import claims
from refunds.models import Refund, RefundPendingReason, RefundReversal
from refunds.refund_acts import REFUND_ACTS
from transfers.models import Transfer

PENDING_TEXTS = {
    RefundPendingReason.AWAITING_DESTINATION: _("the customer's account"),
    RefundPendingReason.PROCESSING: _("the bank"),
}


class RefundAdmin(ActingAdmin):
    """The list and pages of refunds. `console` registers a subclass."""

    mode_column = "merchant__mode"
    list_display = [
        "id", "merchant", "payment", "baht", "status", "pending_reason", "returned_at", "created_at"
    ]  # fmt: skip
    list_filter = [
        MerchantFilter, "status", DateFilter, AmountFilter,
        ("returned_at", admin.EmptyFieldListFilter),
    ]  # fmt: skip
    list_select_related = ["merchant", "payment"]
    search_fields = ["=id", "=payment__id"]
    scanned_fields = ("amount",)
    object_acts = REFUND_ACTS

    def found_elsewhere(self, texts: list[str]) -> Iterable[Any]:
        """That of the address of a claim page."""
        return claims.refunds_of(texts)

    @admin.display(description=_("waits for"))
    def pending_reason(self, refund: Refund) -> str | None:
        if refund.awaiting_approval:
            return gettext("approval by a second person")
        return None if refund.pending_reason is None else str(PENDING_TEXTS[refund.pending_reason])

    @admin.display(description=_("destination"))
    def destination(self, refund: Refund) -> str | None:
        order = Transfer.objects.filter(pk=refund.id).first()
        if order is None:
            return None
        return (
            f"{order.bank_code} {personal_data.account(order.account)}"
            if order.account
            else gettext("the card")
        )

    @admin.display(description=_("claim link"))
    def claim_link(self, refund: Refund) -> str | None:
        link = claims.newest(refund)
        if link is None:
            return None
        return gettext("%(status)s, %(tries)s tries left, until %(at)s") % {
            "status": link.status_at(clock.now()).label,
            "tries": link.tries_left,
            "at": clock.display(link.expires_at),
        }

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return [*super().get_fields(request, obj), "pending_reason", "destination", "claim_link"]


@admin.register(RefundReversal)
class RefundReversalAdmin(ReadOnlyAdmin):
    mode_column = "payment__merchant__mode"
    list_display = ["reversal_id", "payment", "baht", "refunded_amount", "route", "created_at"]
    list_select_related = ["payment"]
    search_fields = ["=reversal_id", "=payment__id"]
