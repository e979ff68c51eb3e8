from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from audit_trail.act_pages import ActingAdmin
from audit_trail.pages import ReadOnlyAdmin
from core import money
from core.console.admin_lists import DateFilter
from merchants.admin_filters import MerchantFilter
from settlements.models import AcquirerTransfer, OpenQuestion, SettledItem, Settlement
from settlements.question_acts import QUESTION_ACTS


@admin.register(AcquirerTransfer)
class AcquirerTransferAdmin(ReadOnlyAdmin):
    list_display = ["id", "acquirer", "transfer_id", "state", "net_baht", "created_at", "arrived_at"]
    list_filter = ["acquirer", "state", DateFilter]
    search_fields = ["=id", "=transfer_id"]

    @admin.display(description=_("arrives"))
    def net_baht(self, transfer: AcquirerTransfer) -> str:
        return money.display(transfer.net_amount)


@admin.register(Settlement)
class SettlementAdmin(ReadOnlyAdmin):
    list_display = ["id", "merchant", "transfer", "payment_count", "net_baht", "expected_at", "arrived_at"]
    list_filter = [MerchantFilter, DateFilter, "differs"]
    list_select_related = ["merchant", "transfer"]
    search_fields = ["=id", "=transfer__transfer_id"]

    @admin.display(description=_("net"))
    def net_baht(self, settlement: Settlement) -> str:
        return money.display(settlement.net_amount)


@admin.register(SettledItem)
class SettledItemAdmin(ReadOnlyAdmin):
    list_display = ["transfer", "kind", "reference", "payment", "net_baht", "description"]
    list_select_related = ["transfer", "payment"]
    search_fields = ["=reference", "=payment__id", "=transfer__id", "=settlement__id"]
    ordering = ["-id"]

    @admin.display(description=_("net"))
    def net_baht(self, item: SettledItem) -> str:
        return money.display(item.net_amount)


@admin.register(OpenQuestion)
class OpenQuestionAdmin(ActingAdmin):
    list_display = ["id", "kind", "acquirer", "subject", "difference_baht", "opened_at", "closed_at"]
    list_filter = ["kind", "acquirer", ("closed_at", admin.EmptyFieldListFilter)]
    search_fields = ["=id", "=subject", "=payment__id", "=transfer__id"]
    ordering = ["-opened_at", "-id"]
    object_acts = QUESTION_ACTS

    @admin.display(description=_("difference"))
    def difference_baht(self, question: OpenQuestion) -> str:
        return money.display(question.difference)
