"""The pages of transfers of acquirers, settlements and questions, and their lists."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from audit_trail.act_pages import ActingAdmin
from audit_trail.pages import ReadOnlyAdmin
from console.settlements import summaries
from core import clock
from core.console import admin_columns
from core.console.admin_lists import DateFilter
from merchants.admin_filters import MerchantFilter
from payments.admin import AcquirerFilter, CardChargeAdmin
from reconciliation.models import BankTransaction
from settlements.models import AcquirerTransfer, OpenQuestion, SettledItem, Settlement, SettlementStatus
from settlements.question_acts import QUESTION_ACTS

# Rows that each table of a page shows.
MAX_ROWS = 50
STATUSES = {
    SettlementStatus.EXPECTED: _("Expected"),
    SettlementStatus.ARRIVED: _("Arrived"),
    SettlementStatus.LATE: _("Late"),
    SettlementStatus.DIFFERS: _("Differs"),
}


class OpenFilter(admin.SimpleListFilter):
    title, parameter_name = _("status"), "status"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, Any]]:
        return [("open", _("Open")), ("closed", _("Closed"))]

    def queryset(self, request: Any, queryset: Any) -> Any:
        is_known = self.value() in ("open", "closed")
        return queryset.filter(closed_at__isnull=self.value() == "open") if is_known else queryset


class SummarizedAdmin(ReadOnlyAdmin):
    """A page with tables of what belongs to its row."""

    change_form_template = "admin/settlement.html"

    items_title = _("What it pays out")

    def page_context(self, request: HttpRequest, row: Any) -> dict[str, Any]:
        """Each table needs the right to view its model."""
        may = request.user.has_perm
        shown = super().page_context(request, row)
        if may("settlements.view_settleditem"):
            items = self.items_of(row).select_related("payment").order_by("pk")[: MAX_ROWS + 1]
            shown |= {"items": items[:MAX_ROWS], "has_more": len(items) > MAX_ROWS}
            shown["items_title"] = self.items_title
        if may("settlements.view_openquestion"):
            shown["questions"] = self.questions_of(row).order_by("opened_at", "pk")[:MAX_ROWS]
        return shown

    def items_of(self, row: Any) -> Any:
        return row.items.all()

    def questions_of(self, row: Any) -> Any:
        return OpenQuestion.objects.filter(transfer=row)

    net_baht = admin_columns.baht(_("net"), lambda row: row.net_amount)
    acquirer_name = CardChargeAdmin.acquirer_name


class TransferPageAdmin(SummarizedAdmin):
    mode_column = "acquirer"
    list_display = ["id", "acquirer_name", "transfer_id", "state", "net_baht", "created_at", "arrived_at"]
    list_filter = [AcquirerFilter, "state", DateFilter]
    search_fields = ["=id", "=transfer_id"]
    fields = [
        *("acquirer_name", "transfer_id", "state", "paid_baht", "cost_baht", "net_baht"),
        *("created_at", "arrived_at", "bank_money"),
    ]
    summary_of = staticmethod(summaries.of_transfer)
    paid_baht = admin_columns.baht(_("what it pays out"), lambda row: row.amount)
    cost_baht = admin_columns.baht(_("price of the transfer, with VAT"), lambda row: row.fee + row.fee_vat)

    def page_context(self, request: HttpRequest, row: AcquirerTransfer) -> dict[str, Any]:
        shown = super().page_context(request, row)
        if request.user.has_perm("settlements.view_settlement"):
            shown["settlements"] = row.settlements.select_related("merchant").order_by("pk")[:MAX_ROWS]
        return shown

    @admin.display(description=_("seen at our bank"))
    def bank_money(self, transfer: AcquirerTransfer) -> Any:
        key = transfer.bank_transaction_id
        return admin_columns.link_to(BankTransaction, key, admin_columns.copyable(key)) if key else None


class SettlementPageAdmin(SummarizedAdmin):
    mode_column = "merchant__mode"
    list_display = [
        *("id", "merchant", "transfer", "status_now", "payment_count", "net_baht"),
        *("expected_at", "arrived_at"),
    ]
    list_filter = [MerchantFilter, DateFilter, "differs"]
    list_select_related = ["merchant", "transfer"]
    search_fields = ["=id", "=transfer__transfer_id"]
    fields = [
        *("merchant", "transfer", "status_now", "payment_count", "gross_amount", "fee", "vat_baht"),
        *("net_baht", "created_at", "expected_at", "arrived_at"),
    ]
    summary_of = staticmethod(summaries.of_settlement)
    vat_baht = admin_columns.baht(_("VAT of the fee"), lambda row: row.fee_vat)

    def questions_of(self, row: Settlement) -> Any:
        return OpenQuestion.objects.filter(transfer_id=row.transfer_id)

    def export_net_amount(self, settlement: Settlement) -> int:
        return settlement.net_amount

    @admin.display(description=_("status"))
    def status_now(self, settlement: Settlement) -> str:
        status = settlement.status_at(clock.now())
        return admin_columns.badge(status, STATUSES[status])


class QuestionPageAdmin(SummarizedAdmin, ActingAdmin):
    mode_column = "acquirer"
    list_display = ["id", "kind", "acquirer_name", "subject", "difference_baht", "opened_at", "closed_at"]
    list_filter = [OpenFilter, AcquirerFilter, "kind"]
    search_fields = ["=id", "=subject", "=payment__id", "=transfer__id"]
    ordering = ["-opened_at", "-id"]
    object_acts = QUESTION_ACTS
    fields = [
        *("kind", "difference_baht", "acquirer_name", "subject", "payment", "transfer"),
        *("opened_at", "closed_at", "note", "is_booked", "failed_transfer"),
    ]
    summary_of = staticmethod(summaries.of_question)
    difference_baht = admin_columns.baht(_("difference"), lambda row: row.difference)
    items_title = _("What transfers paid for the payment")

    def items_of(self, row: OpenQuestion) -> Any:
        """What transfers paid for the payment of the question."""
        found = SettledItem.objects
        return found.filter(payment=row.payment_id) if row.payment_id else found.none()

    def questions_of(self, row: OpenQuestion) -> Any:
        return OpenQuestion.objects.none()
