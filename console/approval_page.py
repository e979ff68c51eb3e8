"""The page of an approval in words: what happens on each decision, who asked, and where the money goes."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from django.contrib.admin.utils import quote
from django.urls import reverse
from django.utils.html import format_html
from django.utils.timezone import localtime
from django.utils.translation import gettext as _

from approvals.models import Approval, ApprovalKind
from core import clock, money, personal_data, request_context
from ledger import services as ledger
from ledger.services import Balance
from merchants.models import ApiKey
from reconciliation.exceptions.explanations import bank_label, format_duration

OVERDUE_AGE = timedelta(days=1)
# The console page of the subject of an approval.
SUBJECT_URLS = {
    ApprovalKind.WITHDRAWAL: "admin:withdrawals_withdrawal_change",
    ApprovalKind.REFUND: "admin:refunds_refund_change",
    ApprovalKind.RETURN: "admin:reconciliation_return_change",
    ApprovalKind.RETURN_BY_HAND: "admin:reconciliation_return_change",
    ApprovalKind.WRITE_OFF: "admin:reconciliation_reconciliationexception_change",
    ApprovalKind.NEVER_ARRIVED: "admin:transfers_transfer_change",
}
# By kind: what happens if it is approved, and if it is rejected.
EFFECTS: dict[ApprovalKind, tuple[Callable[[dict[str, str]], str], Callable[[dict[str, str]], str]]] = {
    ApprovalKind.WITHDRAWAL: (
        lambda words: (
            _(
                "%(amount)s of %(merchant)s is sent to %(destination)s at once. A withdrawal that the bank "
                "has got cannot be canceled."
            )
            % words
        ),
        lambda words: (
            _("The withdrawal fails, and %(amount)s is in the balance of %(merchant)s again.") % words
        ),
    ),
    ApprovalKind.REFUND: (
        lambda words: (
            _(
                "%(amount)s of %(merchant)s is sent to %(destination)s at once, which is not the payer's "
                "account. A refund that the bank has got cannot be canceled."
            )
            % words
        ),
        lambda words: _("The refund fails, and %(amount)s is in the balance of %(merchant)s again.") % words,
    ),
    ApprovalKind.RETURN: (
        lambda words: (
            _(
                "%(amount)s that we hold is sent to %(destination)s at once. A member of staff entered this "
                "account: it is not the payer's."
            )
            % words
        ),
        lambda words: _("Nothing is sent. The exception over %(amount)s waits for another decision.") % words,
    ),
    ApprovalKind.RETURN_BY_HAND: (
        lambda words: (
            _(
                "Nothing is sent: the requester says that %(amount)s was sent at the bank already. It leaves "
                "our books, so look for it in the bank's online banking first."
            )
            % words
        ),
        lambda words: _("The exception over %(amount)s waits for another decision.") % words,
    ),
    ApprovalKind.WRITE_OFF: (
        lambda words: _("%(amount)s is booked as our loss. Nothing is sent.") % words,
        lambda words: _("Nothing is booked. The exception over %(amount)s stays open.") % words,
    ),
    ApprovalKind.NEVER_ARRIVED: (
        lambda words: (
            _(
                "The order fails, and its %(amount)s is available again. If the bank sends it after all, it "
                "is paid twice: ask the bank first."
            )
            % words
        ),
        lambda words: (
            _("The order over %(amount)s stays as it is, and we go on asking the bank about it.") % words
        ),
    ),
}


def effects(approval: Approval) -> tuple[str, str]:
    """What happens if it is approved, and if it is rejected."""
    words = {
        "amount": money.display(approval.amount),
        "merchant": str(approval.merchant.name) if approval.merchant else _("no merchant"),
        "destination": destination(approval),
    }
    approve, reject = EFFECTS[ApprovalKind(approval.kind)]
    return approve(words), reject(words)


def details(approval: Approval) -> list[tuple[str, Any]]:
    """Labels and values, without empty ones."""
    merchant = approval.merchant
    balance = ledger.balance(merchant.id) if merchant else None
    subject_url = SUBJECT_URLS[ApprovalKind(approval.kind)]
    expiry = _("Never. It waits until somebody decides, or until it is canceled.")
    found = [
        (_("Amount"), money.display(approval.amount)),
        (
            _("Merchant"),
            _link("admin:merchants_merchant_change", merchant.id, str(merchant)) if merchant else None,
        ),
        (_("Destination"), destination(approval)),
        (_("Requested by"), _requester(approval)),
        (_("Requested at"), _time(approval)),
        (_("Reason of the requester"), approval.note),
        (_("Why a second person"), approval.get_reason_display()),
        (_("Expires"), expiry if approval.is_waiting else None),
        (_("About"), _link(subject_url, approval.subject_id, approval.subject_id)),
        (_("Merchant's balance"), money.display(balance.available) if balance else None),
        (_("Merchant's debt"), debt(balance) if balance and balance.debt else None),
        (_("Decided by"), request_context.display_name(approval.decided_by)),
        (_("Decided at"), approval.decided_at),
        (_("Reason of the decision"), approval.decision_note),
    ]
    return [(label, value) for label, value in found if value not in (None, "")]


def destination(approval: Approval) -> str:
    name = f"{personal_data.name(approval.account_name)}, " if approval.account_last4 else ""
    return name + account(approval)


def account(approval: Approval) -> str:
    if not approval.account_last4:
        return _("none") if approval.kind == ApprovalKind.WRITE_OFF else _("see the bank")
    last4 = personal_data.MASK * 4 if personal_data.is_hidden() else approval.account_last4
    return _("...%(last4)s at %(bank)s") % {"last4": last4, "bank": bank_label(approval.bank_code)}


def debt(balance: Balance) -> str:
    return format_html('<strong class="state bad">{}</strong>', money.display(balance.debt))


def age(approval: Approval) -> str:
    return format_duration(clock.now() - approval.requested_at)


def _requester(approval: Approval) -> str:
    """A name, or a link to the API key."""
    kind, _separator, public_id = approval.requested_by.partition(":")
    key = ApiKey.objects.filter(public_id=public_id).first() if kind == "key" else None
    if key is None:
        return request_context.display_name(approval.requested_by)
    text = _("API key %(key)s, issued by %(issuer)s") % {
        "key": public_id,
        "issuer": request_context.display_name(key.issued_by),
    }
    return _link("admin:merchants_apikey_change", key.pk, text)


def _time(approval: Approval) -> str:
    at = f"{localtime(approval.requested_at):%Y-%m-%d %H:%M:%S}"
    return _("%(at)s, %(age)s ago") % {"at": at, "age": age(approval)} if approval.is_waiting else at


def _link(page: str, pk: str, text: str) -> str:
    return format_html('<a href="{}">{}</a>', reverse(page, args=[quote(pk)]), text)
