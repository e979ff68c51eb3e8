from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from core import admin_columns, clock, vault
from core.admin import ReadOnlyAdmin
from sandbox.models import (
    SandboxCallback,
    SandboxCardRefund,
    SandboxCharge,
    SandboxEntry,
    SandboxOrder,
    SandboxPayment,
)


@admin.register(SandboxPayment)
class SandboxPaymentAdmin(ReadOnlyAdmin):
    list_display = ["id", "scenario", "baht", "biller_id", "reference1", "paid_at"]
    list_filter = ["scenario"]
    search_fields = ["=id", "=slip_reference"]


@admin.register(SandboxEntry)
class SandboxEntryAdmin(ReadOnlyAdmin):
    list_display = ["id", "payment", "type", "occurred_at", "booked_at"]
    list_filter = ["type"]
    search_fields = ["=payment__id"]


@admin.register(SandboxOrder)
class SandboxOrderAdmin(ReadOnlyAdmin):
    list_display = ["id", "reference", "type", "baht", "status", "reason", "created_at"]
    list_filter = ["type", "reason"]
    search_fields = ["=id", "=reference"]
    readonly_fields = ["status", "account_masked"]

    @admin.display(description=_("status"))
    def status(self, order: SandboxOrder) -> str:
        status = order.status_at(clock.now())
        return admin_columns.badge(status, status.label)

    @admin.display(description=_("account"))
    def account_masked(self, order: SandboxOrder) -> str | None:
        return vault.masked(order.account)


@admin.register(SandboxCallback)
class SandboxCallbackAdmin(ReadOnlyAdmin):
    list_display = ["id", "payment", "order", "state", "attempts", "due_at", "last_status", "last_error"]
    list_filter = ["state"]
    search_fields = ["=payment__id", "=order__id"]
    list_select_related = ["payment", "order"]


@admin.register(SandboxCharge)
class SandboxChargeAdmin(ReadOnlyAdmin):
    list_display = ["id", "order_id", "baht", "brand", "last4", "failure_code", "created_at"]
    search_fields = ["=id", "=order_id"]


@admin.register(SandboxCardRefund)
class SandboxCardRefundAdmin(ReadOnlyAdmin):
    list_display = ["id", "order_id", "charge", "amount", "created_at"]
    search_fields = ["=id", "=order_id"]
