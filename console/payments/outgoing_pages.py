"""The pages of refunds and withdrawals."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from audit_trail.act_pages import ActingAdmin
from audit_trail.notes.acts import note_acts
from audit_trail.notes.pages import NotedPages
from console.payments import summaries
from core import clock
from core.console import admin_columns
from core.console.summaries import Summary, context
from refunds.admin import RefundAdmin
from transfers.models import Transfer
from withdrawals.admin import WithdrawalAdmin


class OutgoingPageAdmin(NotedPages, ActingAdmin):
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

    def page_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        return context(request, self.summary_of(row, clock.now()))


class RefundPageAdmin(OutgoingPageAdmin, RefundAdmin):
    object_acts = RefundAdmin.object_acts + note_acts("refunds.refund")
    summary_of = staticmethod(summaries.of_refund)


class WithdrawalPageAdmin(OutgoingPageAdmin, WithdrawalAdmin):
    object_acts = WithdrawalAdmin.object_acts + note_acts("withdrawals.withdrawal")
    summary_of = staticmethod(summaries.of_withdrawal)
