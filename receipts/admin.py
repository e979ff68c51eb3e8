from typing import Any

from django.contrib import admin, messages
from django.contrib.admin.utils import quote
from django.db.models import QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from banks import Word
from core import clock, money, vault
from core.admin import ReadOnlyAdmin
from receipts import case_page, orders
from receipts.exceptions_admin import ExceptionsAdmin
from receipts.inquiry_admin import ConfirmationInquiryAdmin, InquiryAdmin, InquiryAnswerAdmin, WatchAdmin
from receipts.models import (
    Act,
    ConfirmationInquiry,
    Enrolment,
    Inquiry,
    InquiryAnswer,
    Notice,
    Receipt,
    Rest,
    Return,
    SlipCheck,
    Statement,
    StatementLine,
    Turn,
    Waiting,
)
from receipts.slip_admin import SlipCheckAdmin
from receipts.statement_admin import StatementAdmin, StatementLineAdmin
from transfers import services as transfers
from transfers.admin import TransferAdmin
from transfers.models import Contradiction, Transfer


@admin.register(Receipt)
class ReceiptAdmin(ReadOnlyAdmin):
    shows_personal_data = True
    list_display = [
        "id", "bank", "bank_transaction_id", "kind", "baht", "outcome", "is_confirmed", "payment", "paid_at",
    ]  # fmt: skip
    list_filter = ["is_confirmed", "outcome", "kind", "bank"]
    list_select_related = ["payment"]
    search_fields = [
        "=id",
        "=bank_transaction_id",
        "=also_known_as",
        "=slip_reference",
        "=reference1",
        "=payment__id",
    ]
    search_help_text = "One of our ids, the bank's id, the slip's, or the reference."

    @admin.display(description="amount")
    def baht(self, receipt: Receipt) -> str:
        return money.display(receipt.amount)

    @admin.display(description="payer's account")
    def payer_account_masked(self, receipt: Receipt) -> str | None:
        return vault.masked(receipt.payer_account or None)

    def get_fields(self, request: Any, obj: Any = None) -> Any:
        hidden = {"amount", "payer_account_sealed"}
        plain = [field.name for field in Receipt._meta.concrete_fields if field.name not in hidden]
        return ["decisions", "baht", *plain, "payer_account_masked"]

    @admin.display(description="decisions")
    def decisions(self, receipt: Receipt) -> str:
        page = reverse("admin:receipts_waiting_change", args=[quote(receipt.pk)])
        return format_html('<a href="{}">What it may be for, and what was done about it</a>', page)


@admin.register(Notice)
class NoticeAdmin(ReadOnlyAdmin):
    shows_personal_data = True
    list_display = ["id", "bank", "source", "verdict", "receipt", "order_id", "received_at"]
    list_filter = ["verdict", "bank"]
    list_select_related = ["receipt"]
    search_fields = ["=id", "=receipt__id", "=order_id"]
    fields = ["id", "bank", "source", "verdict", "receipt", "order", "received_at", "request_id", "message"]

    @admin.display(description="order", empty_value="-")
    def order(self, notice: Notice) -> str | None:
        return case_page.order_of(notice)

    @admin.display(description="message")
    def message(self, notice: Notice) -> str:
        return case_page.message_of(notice)


admin.site.register(Waiting, ExceptionsAdmin)
admin.site.register(SlipCheck, SlipCheckAdmin)
admin.site.register(Statement, StatementAdmin)
admin.site.register(StatementLine, StatementLineAdmin)
admin.site.register(Inquiry, InquiryAdmin)
admin.site.register(ConfirmationInquiry, ConfirmationInquiryAdmin)
admin.site.register(InquiryAnswer, InquiryAnswerAdmin)
admin.site.register([Turn, Rest, Enrolment], WatchAdmin)


@admin.register(Act)
class ActAdmin(ReadOnlyAdmin):
    list_display = ["id", "at", "subject", "deed", "by", "why", "payment_id"]
    list_filter = ["deed"]
    search_fields = ["=subject_id", "=payment_id"]

    @admin.display
    def subject(self, act: Act) -> str:
        page = reverse("admin:receipts_waiting_change", args=[quote(act.subject_id)])
        return format_html('<a href="{}">{}</a>', page, act.subject_id)


@admin.register(Return)
class ReturnAdmin(ReadOnlyAdmin):
    list_display = ["id", "receipt", "baht", "route", "status", "by_hand", "created_at", "completed_at"]
    list_filter = ["status", "by_hand"]
    list_select_related = ["receipt"]
    search_fields = ["=id", "=receipt__id", "=bank_reference"]

    @admin.display(description="amount")
    def baht(self, made: Return) -> str:
        return money.display(made.amount)


@admin.register(Contradiction)
class ContradictionAdmin(ReadOnlyAdmin):
    """What banks and acquirers say against our records, also after staff have ended it."""

    list_display = ["id", "at", "subject", "route", "state", "answer", "bank_reference"]
    list_filter = ["route"]
    search_fields = ["=id", "=subject_id", "=bank_reference"]
    ordering = ["-id"]

    @admin.display
    def subject(self, found: Contradiction) -> str:
        page = reverse("admin:receipts_waiting_change", args=[quote(found.pk)])
        return format_html('<a href="{}">{}</a>', page, found.subject_id)


@admin.register(Transfer)
class OrderAdmin(TransferAdmin):
    """Orders to banks, and the end of those on which a bank is silent: by what it says when staff ask it."""

    actions = ["never_arrived", "arrived", "give_up"]

    @admin.action(
        description="The bank never had it: the merchant gets the money back", permissions=["settle"]
    )
    def never_arrived(self, request: HttpRequest, chosen: QuerySet[Transfer]) -> None:
        self._settle(request, chosen, transfers.NEVER_ARRIVED)

    @admin.action(description="The bank says it arrived", permissions=["settle"])
    def arrived(self, request: HttpRequest, chosen: QuerySet[Transfer]) -> None:
        self._settle(request, chosen, transfers.ARRIVED)

    @admin.action(
        description="The bank was never reached: end it and release the money", permissions=["settle"]
    )
    def give_up(self, request: HttpRequest, chosen: QuerySet[Transfer]) -> None:
        for transfer in chosen:
            try:
                orders.give_up(transfer.id, now=clock.now())
            except transfers.AlreadyTold:
                messages.warning(request, f"{transfer.id} may have reached its bank: nothing changed.")
            else:
                self.log_change(request, transfer, "ended: its bank was never reached")
                messages.success(request, f"{transfer.id} is ended and never sent.")

    @admin.display(description="told by the bank", empty_value="-")
    def notices(self, transfer: Transfer) -> SafeString:
        told = [(case_page.linked(notice), notice.verdict) for notice in case_page.told_of(transfer.id)]
        return format_html_join(", ", "{} ({})", told)

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return [*super().get_fields(request, obj), "notices"]

    def has_settle_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("transfers.settle_transfer")

    def _settle(self, request: HttpRequest, chosen: QuerySet[Transfer], word: Word) -> None:
        for transfer in chosen:
            try:
                by = request.user.get_username()
                is_over = orders.settle_by_hand(transfer.id, word, by=by, now=clock.now())
            except transfers.NotOverdue:
                messages.warning(request, f"{transfer.id} is over or not overdue: nothing changed.")
            else:
                if is_over:
                    self.log_change(request, transfer, f"ended by hand: {word.fate}")
                    messages.success(request, f"{transfer.id} {word.fate}.")
                else:
                    self.log_change(request, transfer, "asked a second person to end it as never arrived")
                    messages.warning(request, f"{transfer.id} waits: a second person must approve it first.")
