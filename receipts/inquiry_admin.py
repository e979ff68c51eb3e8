"""What banks were asked, and what they answered: to be read."""

from django.contrib import admin

from core.admin import ReadOnlyAdmin
from receipts.models import Inquiry


class InquiryAdmin(ReadOnlyAdmin):
    list_display = ["payment_id", "bank", "status", "step", "due_at"]
    list_filter = ["bank", ("due_at", admin.EmptyFieldListFilter)]
    list_select_related = ["payment"]
    search_fields = ["=payment__id"]
    ordering = ["-pk"]

    @admin.display(description="payment is")
    def status(self, inquiry: Inquiry) -> str:
        return str(inquiry.payment.status)


class ConfirmationInquiryAdmin(ReadOnlyAdmin):
    list_display = ["id", "bank", "receipt_id", "notice_id", "said", "attempts", "due_at", "confirmed_at"]
    list_filter = ["bank", "said", ("confirmed_at", admin.EmptyFieldListFilter)]
    search_fields = ["=receipt__id", "=notice__id", "=payment_id"]
    ordering = ["-id"]


class InquiryAnswerAdmin(ReadOnlyAdmin):
    list_display = ["payment_id", "said", "found", "took_ms", "at", "request_id"]
    list_filter = ["said"]
    search_fields = ["=payment__id"]
    ordering = ["-id"]


class WatchAdmin(ReadOnlyAdmin):
    """Whose turn it is, and how far the search has come: a row or two."""
