from collections.abc import Iterable
from typing import Any

from django.contrib import admin
from django.http import HttpRequest
from django.utils.functional import Promise
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.text import capfirst
from django.utils.translation import gettext_lazy as _

import banks
from audit_trail.act_pages import ActPages
from audit_trail.pages import ReadOnlyAdmin
from core.console import admin_columns, personal_data
from core.console.admin_columns import column
from core.console.admin_filters import AmountFilter
from core.console.admin_lists import DateFilter
from merchants.admin_filters import NewestOfMerchantFilter
from reconciliation import models
from reconciliation.exceptions import detail_page, payer_names
from reconciliation.exceptions.admin import ReconciliationExceptionAdmin
from reconciliation.exceptions.transfer_acts import TRANSFER_ACTS
from reconciliation.slips.admin import SlipCheckAdmin
from reconciliation.statements.admin import StatementAdmin, StatementLineAdmin
from transfers.admin import TransferAdmin
from transfers.models import Transfer, TransferContradiction


def _page_of(subject_id: str, label: str | Promise) -> Any:
    """A link to the page of an exception, also after it was resolved."""
    return admin_columns.link_to(models.ReconciliationException, subject_id, label)


class BankTransactionAdmin(ReadOnlyAdmin):
    """The list and pages of bank transactions. `console` registers a subclass."""

    shows_personal_data = True
    mode_column = "bank"
    list_display = [
        "id", "bank_name", "bank_reference", "kind", "baht", "match_result", "is_confirmed",
        "payment", "paid_at",
    ]  # fmt: skip
    list_filter = [
        NewestOfMerchantFilter, DateFilter, AmountFilter, "is_confirmed", "match_result",
        "kind", "bank",
    ]  # fmt: skip
    list_select_related = ["payment"]
    search_fields = [
        *("=id", "=bank_reference", "=later_bank_reference", "=slip_reference", "=reference1"),
        "=payment__id",
    ]
    scanned_fields = ("amount", "payer_name", "payer_account")
    export_columns = (
        "id", "bank", "bank_reference", "kind", "amount", "match_result", "is_confirmed", "payment",
        "paid_at",
    )  # fmt: skip

    def found_elsewhere(self, texts: list[str]) -> Iterable[Any]:
        return payer_names.find(texts[0])

    bank_name = column(_("bank"), lambda bank_transaction: capfirst(banks.title(bank_transaction.bank)))
    payer_account_masked = column(
        _("payer's account"), lambda found: personal_data.account(found.payer_account or None)
    )
    decisions = column(_("decisions"), lambda found: _page_of(found.pk, _("Possible payments and history")))

    def get_fields(self, request: Any, obj: Any = None) -> Any:
        plain = admin_columns.readable_fields(models.BankTransaction)
        plain = [name for name in plain if name not in ("id", "amount", "merchant", "bank", "matched_at")]
        return ["baht", "merchant", "bank_name", *plain, "payer_account_masked", "decisions"]


@admin.register(models.BankNotification)
class BankNotificationAdmin(ReadOnlyAdmin):
    shows_personal_data = True
    mode_column = "bank"
    list_display = ["id", "bank", "source", "result", "bank_transaction", "order_id", "received_at"]
    list_filter = ["result", "bank"]
    list_select_related = ["bank_transaction"]
    search_fields = ["=id", "=bank_transaction__id", "=order_id"]
    fields = [
        *("id", "bank", "source", "result", "bank_transaction", "order", "received_at", "request_id"),
        "message",
    ]

    order = column(
        _("order"), lambda found: detail_page.link_to(detail_page.order_of(found)), empty_value="-"
    )
    message = column(_("message"), detail_page.redacted_message)


admin.site.register(models.ReconciliationException, ReconciliationExceptionAdmin)
admin.site.register(models.SlipCheck, SlipCheckAdmin)
admin.site.register(models.Statement, StatementAdmin)
admin.site.register(models.StatementLine, StatementLineAdmin)


@admin.register(models.Inquiry)
class InquiryAdmin(ReadOnlyAdmin):
    mode_column = "bank"
    list_display = ["payment_id", "bank", "status", "schedule_index", "due_at"]
    list_filter = ["bank", ("due_at", admin.EmptyFieldListFilter)]
    list_select_related = ["payment"]
    search_fields = ["=payment__id"]
    ordering = ["-pk"]

    status = column(_("payment status"), lambda inquiry: str(inquiry.payment.status))


@admin.register(models.ConfirmationInquiry)
class ConfirmationInquiryAdmin(ReadOnlyAdmin):
    mode_column = "bank"
    list_display = [
        *("id", "bank", "bank_transaction_id", "notification_id", "last_outcome", "attempts"),
        *("due_at", "confirmed_at"),
    ]
    list_filter = ["bank", "last_outcome", ("confirmed_at", admin.EmptyFieldListFilter)]
    search_fields = ["=bank_transaction__id", "=notification__id", "=payment_id"]
    ordering = ["-id"]


@admin.register(models.InquiryAnswer)
class InquiryAnswerAdmin(ReadOnlyAdmin):
    mode_column = "payment__merchant__mode"
    list_display = [
        *("payment_id", "outcome", "transaction_count", "answer_count", "first_answered_at", "answered_at"),
        *("duration_ms", "request_id"),
    ]
    list_filter = ["outcome"]
    search_fields = ["=payment__id"]
    ordering = ["-id"]


@admin.register(models.Resolution)
class ResolutionAdmin(ReadOnlyAdmin):
    list_display = ["id", "created_at", "subject", "type", "actor", "note", "payment_id"]
    list_filter = ["type"]
    search_fields = ["=subject_id", "=payment_id"]

    subject = column("subject", lambda resolution: _page_of(resolution.subject_id, resolution.subject_id))


@admin.register(models.Return)
class ReturnAdmin(ReadOnlyAdmin):
    mode_column = "route"
    list_display = [
        *("id", "bank_transaction", "baht", "route", "status", "is_manual", "created_at", "completed_at")
    ]
    list_filter = ["status", "is_manual"]
    list_select_related = ["bank_transaction"]
    search_fields = ["=id", "=bank_transaction__id", "=bank_reference"]


@admin.register(TransferContradiction)
class ContradictionAdmin(ReadOnlyAdmin):
    """Contradictions of banks and acquirers, open and resolved."""

    mode_column = "route"
    list_display = ["id", "created_at", "subject", "route", "state", "answer", "bank_reference"]
    list_filter = ["route"]
    search_fields = ["=id", "=subject_id", "=bank_reference"]
    ordering = ["-id"]

    subject = column("subject", lambda found: _page_of(found.pk, found.subject_id))


class OutgoingTransferAdmin(ActPages, TransferAdmin):
    """Staff who asked a silent bank complete its overdue orders here. `console` registers a subclass."""

    object_acts = TRANSFER_ACTS

    @admin.display(description=_("bank notifications"), empty_value="-")
    def notifications(self, transfer: Transfer) -> SafeString:
        found = detail_page.notifications_of_order(transfer.id)
        return format_html_join(", ", "{} ({})", ((detail_page.link_to(each), each.result) for each in found))

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return [*super().get_fields(request, obj), "notifications"]
