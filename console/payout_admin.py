"""The console pages of payout accounts. The page of the merchant adds them and switches the list."""

from typing import Any

from django.http import HttpRequest
from django.utils.translation import gettext_lazy as _

from approvals.models import PayoutAccount
from audit_trail.act_pages import ActingAdmin
from console.payout_acts import PAYOUT_ACCOUNT_ACTS
from core import admin_columns
from core.admin import ReadOnlyAdmin


class PayoutAccountAdmin(ActingAdmin):
    shows_personal_data = True
    list_display = ["id", "merchant", "bank_code", "account_last4", "added_by", "usable_at", "removed_at"]
    list_select_related = ["merchant"]
    search_fields = ["=id", "=merchant__id"]
    search_help_text = _(
        "Search by id of an account or a merchant. Add accounts on the page of the merchant."
    )
    ordering = ["-added_at", "-id"]
    sortable_by = ("added_at",)
    object_acts = PAYOUT_ACCOUNT_ACTS

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return admin_columns.readable_fields(PayoutAccount)


class PayoutPolicyAdmin(ReadOnlyAdmin):
    list_display = ["merchant", "is_restricted", "changed_by", "changed_at"]
    list_select_related = ["merchant"]
    search_fields = ["=merchant__id"]
    sortable_by = ("merchant",)
