"""What the pages of a shop show, made of the classes of the console. A model that is not here has no page."""

from typing import Any

from django.http import HttpRequest
from django.urls import reverse
from django.utils.translation import gettext as _, gettext_lazy

from approvals.models import PayoutAccount
from audit_trail.act_pages import ActLink
from console.approvals.payout_admin import PAYOUT_ACCOUNT_ACTS, PAYOUT_ACTS, PayoutAccountAdmin
from console.merchants.merchant_page import nightly
from console.payments.payment_acts import PAYMENT_ACTS
from console.settlements.pages import SettlementPageAdmin
from core import clock
from core.console import summaries
from core.console.admin_filters import AmountFilter
from core.console.admin_lists import DateFilter
from core.console.summaries import Summary
from links.admin import PaymentLinkAdmin
from links.link_acts import LINK_ACTS
from links.models import PaymentLink
from merchants.admin import ApiKeyAdmin, MerchantAdmin
from merchants.merchant_acts import KEY_ACTS, MERCHANT_ACTS
from merchants.models import ApiKey, Merchant
from operations.data_protection import shop_fence
from operations.evidence.pages import EvidencePages
from payments.admin import PaymentAdmin, PaymentExceptionAdmin, StatusFilter
from payments.explanations import HOLD_ADVICE
from payments.models import Payment, PaymentException
from refunds.admin import RefundAdmin
from refunds.models import Refund
from refunds.refund_acts import REFUND_ACTS
from request_log.admin import RequestRecordAdmin, StatusFilter as ClassFilter
from request_log.models import RequestRecord
from settlements.models import Settlement
from shop.acts import EXCEPTION_ACTS, WITHDRAW_ACT
from shop.link_acts import NEW_LINK_ACTS
from shop.narrowing import NEWEST_FIRST, narrowed
from shop.site import site
from shop.webhook_acts import NEW_ENDPOINT_ACTS, SHOP_ENDPOINT_ACTS
from timeline import pages as timeline
from timeline.entries import PaymentContext
from transactions.admin import TransactionAdmin
from transactions.models import Transaction
from webhooks.acts import DELIVERY_ACTS
from webhooks.admin import DeliveryAdmin, DeliveryAttemptInline, EndpointAdmin
from webhooks.models import Delivery, Endpoint
from withdrawals.admin import WithdrawalAdmin
from withdrawals.models import Withdrawal
from withdrawals.payout_acts import PAYOUT_SCHEDULE_ACTS
from withdrawals.withdrawal_acts import WITHDRAWAL_ACTS

MAX_ENTRIES = 50
MAX_ROWS = 20
WITHDRAW = gettext_lazy("Withdraw to a payout account")


def _of_payment(page: Any, request: HttpRequest, payment: Payment) -> dict[str, Any]:
    """Its refunds and exceptions, and the timeline that the API shows."""
    with shop_fence.lifted():
        context = PaymentContext.of(payment, clock.now())
        entries, total = timeline.page(context, limit=MAX_ENTRIES, offset=0)
    return {
        "refunds": payment.refunds.order_by("-id")[:MAX_ROWS],
        "exceptions": payment.exceptions.order_by("-id")[:MAX_ROWS],
        "entries": entries,
        "total": total,
        **(summaries.context(request, Summary(_held(payment), "wait")) if payment.hold else {}),
    }


def _held(payment: Payment) -> str:
    return HOLD_ADVICE.format(why=payment.get_hold_display())


def _of_merchant(page: Any, request: HttpRequest, merchant: Merchant) -> dict[str, Any]:
    if not request.user.has_perm("withdrawals.view_withdrawal"):
        return {}
    with shop_fence.lifted():  # each statement names the merchant
        return {"nightly": nightly(merchant)}


def _act_of_settings(slug: str) -> Any:
    """The link to an act on the page of the merchant."""

    def links(request: Any) -> list[ActLink]:
        settings: Any = site.get_model_admin(Merchant)
        return [
            each for each in settings.act_links(request, request.membership.merchant) if each.slug == slug
        ]

    return staticmethod(links)


def _to_payout_accounts(request: HttpRequest) -> list[ActLink]:
    if not request.user.has_perm(WITHDRAW_ACT.permission):
        return []
    return [ActLink(WITHDRAW, reverse("admin:approvals_payoutaccount_changelist"), is_dangerous=False)]


class EvidencePaymentAdmin(EvidencePages, PaymentAdmin):
    def sentence_of(self, row: Payment) -> str:
        status = _(str(row.status_at(clock.now()).label))
        return f"{status}. {_held(row)}" if row.hold else f"{status}."


def _register(model: Any, page: Any, **shown: Any) -> None:
    site.register(model, narrowed(page, **shown))


_register(
    Payment,
    EvidencePaymentAdmin,
    newest_first=NEWEST_FIRST,
    list_display=["id", "reference", "status_now", "baht", "created_at"],
    search_columns=["id", "reference", "payer", "status_now", "baht", "created_at"],
    list_filter=[StatusFilter, DateFilter, AmountFilter],
    list_select_related=False,
    fields=[
        *("status_now", "baht", "received_baht", "fee", "fee_vat", "net_baht"),
        *("amount_refunded", "amount_refunding", "reference", "description", "metadata"),
        *("payer_name", "payer_bank_code", "payer_account_masked", "payer_matches"),
        *("bank_reference", "failure_code", "created_at", "expires_at", "completed_at"),
    ],
    export_columns=[
        *("id", "reference", "status", "amount", "fee", "fee_vat", "net", "amount_refunded"),
        *("payer_name", "payer_bank_code", "bank_reference", "created_at", "completed_at"),
    ],
    object_acts=PAYMENT_ACTS,
    page_context=_of_payment,
)
_register(
    PaymentLink,
    PaymentLinkAdmin,
    newest_first=NEWEST_FIRST,
    list_display=["id", "reference", "status_now", "amount_or_limits", "paid_payments", "expires_at"],
    list_filter=[DateFilter],
    list_select_related=False,
    fields=[
        *("status_now", "page", "picture", "amount_or_limits", "description", "reference", "metadata"),
        *("paid_payments", "open_codes", "max_payments", "created_at", "expires_at", "deactivated_at"),
    ],
    export_columns=[
        *("id", "reference", "amount", "amount_min", "amount_max", "description", "payments"),
        *("max_payments", "created_at", "expires_at", "deactivated_at"),
    ],
    object_acts=LINK_ACTS,
    list_acts=NEW_LINK_ACTS,
)
_register(
    PaymentException,
    PaymentExceptionAdmin,
    list_display=["id", "payment", "reason", "baht", "status", "reported_at"],
    fields=["payment", "reason", "baht", "status", "reported_at"],
    export_columns=["id", "payment", "reason", "amount", "status", "reported_at"],
    object_acts=EXCEPTION_ACTS,
)
_register(
    Refund,
    RefundAdmin,
    newest_first=NEWEST_FIRST,
    list_display=["id", "payment", "baht", "status", "pending_reason", "created_at"],
    list_filter=["status", DateFilter, AmountFilter],
    list_select_related=["payment"],
    fields=[
        *("status", "baht", "payment", "reason", "note", "pending_reason", "failure_code"),
        *("created_at", "completed_at", "returned_at"),
    ],
    export_columns=["id", "payment", "amount", "status", "reason", "created_at", "completed_at"],
    object_acts=REFUND_ACTS,
)
_register(
    Withdrawal,
    WithdrawalAdmin,
    newest_first=NEWEST_FIRST,
    list_display=["id", "status", "awaiting_approval", "baht", "bank_code", "account_last4", "created_at"],
    list_filter=["status", DateFilter, AmountFilter],
    list_select_related=False,
    search_fields=["=id", "=reference", "=bank_reference"],
    fields=[
        *("status", "awaiting_approval", "baht", "bank_code", "account_last4", "account_name"),
        *("reference", "bank_reference", "failure_code", "created_at", "completed_at"),
    ],
    export_columns=[
        *("id", "status", "amount", "bank_code", "account_last4", "reference", "bank_reference"),
        *("created_at", "completed_at"),
    ],
    object_acts=WITHDRAWAL_ACTS,
    links_above=staticmethod(_to_payout_accounts),
)
_register(
    PayoutAccount,
    PayoutAccountAdmin,
    list_display=["id", "bank_code", "account_last4", "account_name", "usable_at", "removed_at"],
    list_select_related=False,
    search_fields=(),
    fields=["bank_code", "account_last4", "account_name", "added_at", "usable_at", "removed_at"],
    object_acts=(WITHDRAW_ACT, *PAYOUT_ACCOUNT_ACTS),
    links_above=_act_of_settings("add-payout-account"),
)
_register(
    Settlement,
    SettlementPageAdmin,
    newest_first=NEWEST_FIRST,
    list_display=["id", "status_now", "payment_count", "net_baht", "expected_at", "arrived_at"],
    list_filter=[DateFilter],
    list_select_related=False,
    search_fields=["=id"],
    fields=[
        *("status_now", "payment_count", "gross_amount", "fee", "vat_baht", "net_baht"),
        *("created_at", "expected_at", "arrived_at"),
    ],
    export_columns=[
        *("id", "payment_count", "gross_amount", "fee", "fee_vat", "net_amount", "expected_at", "arrived_at"),
    ],
    page_context=lambda page, request, row: {},
)
_register(
    Transaction,
    TransactionAdmin,
    newest_first=NEWEST_FIRST,
    list_display=["id", "payment_id", "type", "status", "amount", "created_at"],
    list_filter=["type", "status", DateFilter, AmountFilter],
    list_select_related=False,
    fields=["payment_id", "type", "status", "amount", "created_at"],
    export_columns=["id", "payment_id", "type", "status", "amount", "created_at"],
)
_register(
    Merchant,
    MerchantAdmin,
    list_display=["id", "name", "mode", "created_at"],
    search_fields=(),
    sortable_by=(),
    fields=[
        *("name", "mode", "late_money", "refuses_open_reference", "holds_payers", "page_origins"),
        *("tax_id", "tax_branch", "withholds_tax", "proof_page", "created_at", "suspended_at"),
    ],
    object_acts=MERCHANT_ACTS + PAYOUT_ACTS + PAYOUT_SCHEDULE_ACTS,
    page_context=_of_merchant,
)
_register(
    ApiKey,
    ApiKeyAdmin,
    list_display=["id", "public_id", "scopes", "created_at", "expires_at", "revoked_at", "last_used_at"],
    list_select_related=False,
    search_fields=["=id", "=public_id"],
    fields=[
        *("public_id", "scopes", "networks", "created_at", "expires_at", "revoked_at"),
        *("last_used_at", "seen_networks"),
    ],
    object_acts=KEY_ACTS,
    links_above=_act_of_settings("issue-key"),
)
_register(
    Endpoint,
    EndpointAdmin,
    list_display=["id", "type", "address", "state", "current_health", "created_at"],
    list_filter=["type", "status"],
    list_select_related=["health"],
    search_fields=["=id"],
    readonly_fields=["state", "current_health", "latest_failures"],
    fields=[
        *("type", "address", "events", "language", "quiet_hours", "state", "current_health"),
        *("latest_failures", "created_at"),
    ],
    object_acts=SHOP_ENDPOINT_ACTS,
    list_acts=NEW_ENDPOINT_ACTS,
)
_register(
    Delivery,
    DeliveryAdmin,
    newest_days=30,
    list_display=["id", "event_type", "endpoint", "state", "attempt_count", "due_at", "finished_at"],
    list_filter=["state", DateFilter],
    search_fields=["=id", "=event__subject_id"],
    fields=[
        *("event_type", "endpoint", "state", "attempt_count", "created_at", "due_at"),
        *("finished_at", "request_body"),
    ],
    inlines=[DeliveryAttemptInline],
    object_acts=DELIVERY_ACTS,
)
_register(
    RequestRecord,
    RequestRecordAdmin,
    newest_first=NEWEST_FIRST,
    list_display=["id", "created_at", "method", "route", "status", "error_code", "duration_ms"],
    list_filter=[DateFilter, ClassFilter, "idempotency"],
    fields=[
        *("created_at", "method", "path", "status", "error_code", "duration_ms", "idempotency"),
        *("request_id", "key_id", "address", "request_text", "response_text"),
    ],
)
