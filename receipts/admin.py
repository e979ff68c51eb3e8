from typing import Any

from django.contrib import admin

from core import money, vault
from core.admin import ReadOnlyAdmin
from core.logs import redact
from receipts.models import Notice, Receipt


@admin.register(Receipt)
class ReceiptAdmin(ReadOnlyAdmin):
    list_display = ["id", "bank", "bank_transaction_id", "kind", "baht", "outcome", "payment", "paid_at"]
    list_filter = ["outcome", "kind", "bank"]
    list_select_related = ["payment"]
    search_fields = ["=id", "=bank_transaction_id", "=reference1", "=payment__id"]

    @admin.display(description="amount", ordering="amount")
    def baht(self, receipt: Receipt) -> str:
        return money.display(receipt.amount)

    @admin.display(description="payer's account")
    def payer_account_masked(self, receipt: Receipt) -> str | None:
        return vault.masked(receipt.payer_account or None)

    def get_fields(self, request: Any, obj: Any = None) -> Any:
        plain = [
            field.name for field in Receipt._meta.concrete_fields if field.name != "payer_account_sealed"
        ]
        return [*plain, "payer_account_masked"]


@admin.register(Notice)
class NoticeAdmin(ReadOnlyAdmin):
    list_display = ["id", "bank", "source", "verdict", "receipt", "received_at"]
    list_filter = ["verdict", "bank"]
    list_select_related = ["receipt"]
    search_fields = ["=id", "=receipt__id"]
    fields = ["id", "bank", "source", "verdict", "receipt", "received_at", "message"]

    @admin.display(description="message")
    def message(self, notice: Notice) -> str:
        return redact(notice.body.decode("utf-8", "backslashreplace"))
