from django.contrib import admin

from core.admin import ReadOnlyAdmin
from sandbox.models import SandboxCall, SandboxPayment


@admin.register(SandboxPayment)
class SandboxPaymentAdmin(ReadOnlyAdmin):
    list_display = ["id", "scenario", "amount_shown", "biller_id", "reference1", "paid_at"]
    list_filter = ["scenario"]
    search_fields = ["id", "reference1"]
    ordering = ["-created_at"]


@admin.register(SandboxCall)
class SandboxCallAdmin(ReadOnlyAdmin):
    list_display = ["payment", "state", "attempts", "due_at", "last_status", "last_error"]
    list_filter = ["state"]
    search_fields = ["payment__id"]
    list_select_related = ["payment"]
    ordering = ["-created_at"]
