from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import quote
from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.text import capfirst
from django.utils.translation import gettext, gettext_lazy as _

import banks
from audit_trail.act_pages import ActingAdmin
from audit_trail.pages import ReadOnlyAdmin
from core import clock, money
from core.console import admin_columns, personal_data
from core.console.admin_columns import column
from core.console.admin_filters import AmountFilter
from core.console.admin_lists import DateFilter
from merchants.admin_filters import MerchantFilter
from payments import cards, models
from payments.card_models import IS_ON_THE_WAY
from payments.fee_terms import FeeTerms
from payments.match_results import MatchResult

# Statuses of exceptions whose money is still in suspense.
SUSPENSE_STATUSES = [*models.HELD_STATUSES, *models.HELD_EXCESS_STATUSES]
MAX_EXCEPTIONS = 20  # A page shows the oldest. A payment rarely has more than two.


class StatusFilter(admin.SimpleListFilter):
    """Filters by the status at the current time."""

    title, parameter_name = _("status"), "status"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        return [(status.value, gettext(str(status.label))) for status in models.PaymentStatus]

    def queryset(self, request: Any, queryset: Any) -> Any:
        return queryset.with_status(self.value(), clock.now()) if self.value() else queryset


class PaymentAdmin(ActingAdmin):
    """The page of a payment. `console` registers a subclass with the timeline."""

    shows_personal_data = True

    export_columns = (
        "id", "merchant", "reference", "status", "amount", "fee", "fee_vat", "net", "amount_refunded",
        "card_brand", "payer_name", "payer_bank_code", "bank_reference", "created_at", "completed_at",
    )  # fmt: skip
    mode_column, kind_columns = "merchant__mode", ("status",)
    list_display = ["id", "merchant", "reference", "status_now", "baht", "payer_matches", "created_at"]
    list_filter = [MerchantFilter, StatusFilter, DateFilter, AmountFilter, "payer_matches", "hold"]
    list_select_related = ["merchant"]
    search_fields = ["=id", "^reference", "=bank_reference", "=payment_link_id"]
    scanned_fields = ("amount", "reference", "payer_name", "card_last4", "payer_account")
    search_columns = ("id", "reference", "merchant", "payer", "status_now", "baht", "created_at")
    received_baht = admin_columns.baht(_("received"), lambda row: row.received if row.completed_at else None)
    net_baht = admin_columns.baht(_("net"), lambda row: row.net if row.fee else None)
    # With initials only: the page of the payment records who sees the name.
    payer = column(
        _("payer"), lambda row: personal_data.masked_name(name) if (name := row.payer_name) else None
    )
    payment_link = column(
        _("payment link"),
        lambda row: admin_columns.linked_id(link) if (link := row.payment_link_id) else None,
    )
    client_account = column(_("client's account"), lambda row: personal_data.account(row.client_bank_account))
    payer_account_masked = column(_("payer's account"), lambda row: personal_data.account(row.payer_account))

    @admin.display(description=_("status"))
    def status_now(self, payment: models.Payment) -> str:
        status = payment.status_at(clock.now())
        return admin_columns.badge(status, status.label)

    def export_status(self, payment: models.Payment) -> str:
        return payment.status_at(clock.now()).value

    def export_net(self, payment: models.Payment) -> int | None:
        return payment.net

    @admin.display(description=_("in suspense"))
    def suspense_baht(self, payment: models.Payment) -> str | None:
        """Money of exceptions that staff have not resolved."""
        if not payment.has_exceptions:
            return None
        waiting = payment.exceptions.filter(status__in=SUSPENSE_STATUSES).order_by("reported_at", "id")
        found = list(waiting[: MAX_EXCEPTIONS + 1])
        if not found:
            return None
        shown = found[:MAX_EXCEPTIONS]
        page = "admin:reconciliation_reconciliationexception_change"
        links = (
            (reverse(page, args=[quote(each.id)]), gettext(MatchResult(each.reason).label)) for each in shown
        )
        pages = format_html_join(", ", '<a href="{}">{}</a>', links)
        amount = money.display(sum(each.held_amount for each in shown))
        if len(found) > len(shown):
            amount = gettext("at least %(amount)s") % {"amount": amount}
        return format_html("{}: {}", amount, pages)

    @admin.display(description=_("settlement"))
    def settlement(self, payment: models.Payment) -> str | None:
        """The settlement of a card payment, or since when it is on the way."""
        if payment.settlement_id:
            return admin_columns.linked_id(payment.settlement_id)
        if payment.qr_code_id is not None:
            return None
        charge = models.CardCharge.objects.filter(IS_ON_THE_WAY, pk=payment.pk).first()
        if charge is None or charge.paid_at is None:
            return None
        text = gettext("On the way since %(at)s") % {"at": clock.display(charge.paid_at)}
        return format_html('<a href="{}">{}</a>', reverse("admin:on_the_way"), text)

    def get_fieldsets(self, request: Any, obj: Any = None) -> Any:
        parts = {
            _("Money"): [
                *("status_now", "baht", "received_baht", "fee", "fee_vat", "net_baht"),
                *("settlement", "suspense_baht", "amount_refunded", "amount_refunding"),
            ],
            _("Order"): ["merchant", "reference", "description", "metadata", "qr_code_id", "payment_link"],
            _("Payer"): [
                *("payer_name", "payer_bank_code", "payer_account_masked", "payer_matches"),
                *("client_name", "client_bank_name", "client_account"),
            ],
            _("Bank"): ["bank_reference", "failure_code", "card_brand", "card_last4", "authorize_uri"],
            _("Times"): ["created_at", "expires_at", "completed_at", "updated_at"],
        }
        shown = {
            title: [name for name in fields if self.has_value(obj, name)] for title, fields in parts.items()
        }
        return [
            (title, {"fields": admin_columns.details(self, fields)})
            for title, fields in shown.items()
            if fields
        ]


class AcquirerFilter(admin.SimpleListFilter):
    """Rows of an acquirer, by its name in words."""

    title, parameter_name = _("acquirer"), "acquirer"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        return [(name, capfirst(banks.title(name))) for name in sorted(set(cards.ACQUIRERS.values()))]

    def queryset(self, request: Any, queryset: Any) -> Any:
        return queryset.filter(acquirer=self.value()) if self.value() else queryset


class OnTheWayFilter(AcquirerFilter):
    """Charges that the acquirer has not paid. An index has these."""

    title, parameter_name = _("on the way"), "on_the_way"

    def queryset(self, request: Any, queryset: Any) -> Any:
        found = super().queryset(request, queryset)
        return found.filter(IS_ON_THE_WAY) if self.value() else found


@admin.register(models.CardCharge)
class CardChargeAdmin(ReadOnlyAdmin):
    mode_column = "acquirer"
    list_display = [
        *("payment", "acquirer_name", "charge_id", "state", "received_baht", "net_baht"),
        *("paid_at", "settled_at", "due_at"),
    ]
    list_filter = ["state", AcquirerFilter, OnTheWayFilter]
    list_select_related = ["payment"]
    indexed_filters = frozenset({OnTheWayFilter.parameter_name})
    search_fields = ["=payment__id", "=charge_id"]
    received_baht = admin_columns.baht(
        _("received"), lambda row: row.payment.received if row.paid_at else None
    )
    net_baht = admin_columns.baht(_("net"), lambda row: row.payment.net)
    acquirer_name = column(_("acquirer"), lambda charge: capfirst(banks.title(charge.acquirer)))


@admin.register(models.ChargeAnswer)
class ChargeAnswerAdmin(ReadOnlyAdmin):
    mode_column = "charge__acquirer"
    list_display = ["charge", "outcome", "duration_ms", "created_at", "request_id"]
    list_filter = ["outcome"]
    list_select_related = ["charge"]
    search_fields = ["=charge__payment__id"]
    ordering = ["-id"]


@admin.register(FeeTerms)
class FeeTermsAdmin(ReadOnlyAdmin):
    mode_column = "merchant__mode"
    list_display = ["merchant", "starts_on", "fixed", "rate", "vat_rate", "created_at"]
    list_filter = [MerchantFilter]
    list_select_related = ["merchant"]
    search_fields = ["=merchant__id"]
    ordering = ["-starts_on", "-id"]


@admin.register(models.PaymentException)
class PaymentExceptionAdmin(ReadOnlyAdmin):
    mode_column = "payment__merchant__mode"
    list_display = ["id", "payment", "reason", "baht", "status", "reported_at"]
    list_select_related = ["payment"]
    search_fields = ["=id", "=payment__id"]
    ordering = ["-id"]
