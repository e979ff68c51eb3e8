"""Read-only lists of inquiries and their answers."""

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

from audit_trail.pages import ReadOnlyAdmin
from reconciliation.models import Inquiry


class InquiryAdmin(ReadOnlyAdmin):
    mode_column = "bank"
    list_display = ["payment_id", "bank", "status", "schedule_index", "due_at"]
    list_filter = ["bank", ("due_at", admin.EmptyFieldListFilter)]
    list_select_related = ["payment"]
    search_fields = ["=payment__id"]
    ordering = ["-pk"]

    @admin.display(description=_("payment status"))
    def status(self, inquiry: Inquiry) -> str:
        return str(inquiry.payment.status)


class ConfirmationInquiryAdmin(ReadOnlyAdmin):
    mode_column = "bank"
    list_display = [
        "id",
        "bank",
        "bank_transaction_id",
        "notification_id",
        "last_outcome",
        "attempts",
        "due_at",
        "confirmed_at",
    ]
    list_filter = ["bank", "last_outcome", ("confirmed_at", admin.EmptyFieldListFilter)]
    search_fields = ["=bank_transaction__id", "=notification__id", "=payment_id"]
    ordering = ["-id"]


class InquiryAnswerAdmin(ReadOnlyAdmin):
    mode_column = "payment__merchant__mode"
    list_display = [
        "payment_id",
        "outcome",
        "transaction_count",
        "answer_count",
        "first_answered_at",
        "answered_at",
        "duration_ms",
        "request_id",
    ]
    list_filter = ["outcome"]
    search_fields = ["=payment__id"]
    ordering = ["-id"]
