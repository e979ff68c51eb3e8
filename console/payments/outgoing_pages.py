"""The pages of refunds, withdrawals and the orders for them, and of money that banks report."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from audit_trail.act_pages import ActingAdmin
from audit_trail.notes.acts import note_acts
from audit_trail.notes.pages import NotedPages
from console.payments import summaries
from core.console import admin_columns
from reconciliation.admin import BankTransactionAdmin, OutgoingTransferAdmin
from refunds.admin import RefundAdmin
from transfers.models import Transfer
from withdrawals.admin import WithdrawalAdmin


class OutgoingPageAdmin(NotedPages, ActingAdmin):
    """A page that begins with how a refund or withdrawal stands."""

    @admin.display(description=_("order to the bank"))
    def order(self, row: Any) -> Any:
        """The state of the transfer, with a link to its history."""
        found = Transfer.objects.filter(pk=row.pk).first()
        if found is None:
            return None
        state = admin_columns.badge(found.state, found.get_state_display())
        return admin_columns.link_to(Transfer, found.pk, state)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return [*super().get_fields(request, obj), "order"]


class RefundPageAdmin(OutgoingPageAdmin, RefundAdmin):
    object_acts = RefundAdmin.object_acts + note_acts("refunds.refund")
    summary_of = staticmethod(summaries.of_refund)


class WithdrawalPageAdmin(OutgoingPageAdmin, WithdrawalAdmin):
    object_acts = WithdrawalAdmin.object_acts + note_acts("withdrawals.withdrawal")
    summary_of = staticmethod(summaries.of_withdrawal)


class OrderPageAdmin(OutgoingTransferAdmin):
    summary_of = staticmethod(summaries.of_transfer)


class BankTransactionPageAdmin(BankTransactionAdmin):
    summary_of = staticmethod(summaries.of_bank_transaction)
