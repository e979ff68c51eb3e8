"""The console pages of approvals: outgoing money of all kinds that waits for a second person.

The page of one says in words what happens on each decision, who asked, and where the money goes.
"""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import quote
from django.db.models import Exists, Model, OuterRef, Q
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html
from django.utils.timezone import localtime
from django.utils.translation import gettext as _, gettext_lazy

from approvals import services
from approvals.models import Approval, ApprovalKind, ApprovalStatus
from audit_trail.act_pages import ActingAdmin, ObjectAct
from audit_trail.acts import Act
from audit_trail.notes.acts import note_acts
from audit_trail.notes.pages import HandedOverFilter, NotedPages
from core import clock, money, request_context
from core.console import personal_data
from core.thai import thaibanks
from ledger import services as ledger
from ledger.services import Balance
from merchants.models import ApiKey, Mode
from merchants.services import SANDBOX
from reconciliation.exceptions import approval_handlers
from reconciliation.models import BankTransaction, Return
from refunds import completion as refunds
from refunds.models import Refund
from withdrawals import services as withdrawals
from withdrawals.models import Withdrawal

OVERDUE_AGE = timedelta(days=1)
DECIDE_PERMISSION = "approvals.decide_approval"
HANDLERS: dict[str, services.ApprovalHandler] = {
    ApprovalKind.WITHDRAWAL: withdrawals.APPROVAL_HANDLER,
    ApprovalKind.REFUND: refunds.APPROVAL_HANDLER,
    **approval_handlers.HANDLERS,
}
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
EFFECTS = {
    ApprovalKind.WITHDRAWAL: (
        gettext_lazy(
            "%(amount)s of %(merchant)s is sent to %(destination)s at once. A withdrawal that the bank "
            "has got cannot be canceled."
        ),
        gettext_lazy("The withdrawal fails, and %(amount)s is in the balance of %(merchant)s again."),
    ),
    ApprovalKind.REFUND: (
        gettext_lazy(
            "%(amount)s of %(merchant)s is sent to %(destination)s at once, which is not the payer's "
            "account. A refund that the bank has got cannot be canceled."
        ),
        gettext_lazy("The refund fails, and %(amount)s is in the balance of %(merchant)s again."),
    ),
    ApprovalKind.RETURN: (
        gettext_lazy(
            "%(amount)s that we hold is sent to %(destination)s at once. A member of staff entered this "
            "account: it is not the payer's."
        ),
        gettext_lazy("Nothing is sent. The exception over %(amount)s waits for another decision."),
    ),
    ApprovalKind.RETURN_BY_HAND: (
        gettext_lazy(
            "Nothing is sent: the requester says that %(amount)s was sent at the bank already. It leaves "
            "our books, so look for it in the bank's online banking first."
        ),
        gettext_lazy("The exception over %(amount)s waits for another decision."),
    ),
    ApprovalKind.WRITE_OFF: (
        gettext_lazy("%(amount)s is booked as our loss. Nothing is sent."),
        gettext_lazy("Nothing is booked. The exception over %(amount)s stays open."),
    ),
    ApprovalKind.NEVER_ARRIVED: (
        gettext_lazy(
            "The order fails, and its %(amount)s is available again. If the bank sends it after all, it "
            "is paid twice: ask the bank first."
        ),
        gettext_lazy("The order over %(amount)s stays as it is, and we go on asking the bank about it."),
    ),
}


def _decide(run: Callable[..., Approval], approval: Approval, values: dict[str, Any], now: datetime) -> None:
    run(approval.id, HANDLERS[approval.kind], note=values["reason"], now=now)


def _is_decidable(approval: Approval, now: datetime) -> bool:
    return approval.is_waiting and not services.own_request(approval)


APPROVAL_ACTS = (
    ObjectAct(
        "approve", gettext_lazy("Approve"), Act.APPROVED, DECIDE_PERMISSION,
        lambda approval: effects(approval)[0],
        partial(_decide, services.approve),
        is_possible=_is_decidable,
    ),
    ObjectAct(
        "reject", gettext_lazy("Reject"), Act.REJECTED, DECIDE_PERMISSION,
        lambda approval: effects(approval)[1],
        partial(_decide, services.reject),
        is_possible=_is_decidable, is_dangerous=True,
    ),
)  # fmt: skip


class StatusFilter(admin.SimpleListFilter):
    """Shows waiting approvals by default."""

    title, parameter_name = gettext_lazy("status"), "status"

    def lookups(self, request: Any, model_admin: Any) -> list[tuple[str, str]]:
        return [
            ("all", _("All")),
            *((each.value, _(each.label)) for each in ApprovalStatus if each != ApprovalStatus.WAITING),
        ]

    def choices(self, changelist: Any) -> Any:
        shown, *others = super().choices(changelist)
        return [shown | {"display": _(ApprovalStatus.WAITING.label)}, *others]

    def queryset(self, request: Any, queryset: Any) -> Any:
        value = self.value() or ApprovalStatus.WAITING
        return queryset if value == "all" else queryset.filter(status=value)


class ApprovalAdmin(NotedPages, ActingAdmin):
    object_acts = APPROVAL_ACTS + note_acts("approvals.approval")
    returns_to_list = True
    explains_personal_data = True
    shows_personal_data = True
    change_form_template = "admin/approval.html"
    list_display = [
        "age", "baht", "kind", "merchant", "destination", "requested_by", "reason", "balance", "status",
        "handed_to",
    ]  # fmt: skip
    list_display_links = ["age", "baht"]
    list_filter = [StatusFilter, HandedOverFilter]
    mode_column = "merchant__mode"
    list_select_related = ["merchant"]
    search_fields = ["=subject_id"]
    scanned_fields = ("amount", "account_last4")
    ordering = ["requested_at", "id"]
    indexed_filters = frozenset({"status", "handed_to"})

    def result_of(self, request: HttpRequest, row: Any) -> str:
        """How what was decided about stands: a refund or withdrawal has a page that says it."""
        models: dict[str, type[Model]] = {"ref": Refund, "wd": Withdrawal}
        model = models.get(row.subject_id.partition("_")[0])
        found = model and model._default_manager.filter(pk=row.subject_id).first()
        return super().result_of(request, found) if found else ""

    def rows_of_mode(self, rows: Any, mode: str) -> Any:
        return of_mode(rows, mode)

    def prepare_rows(self, shown: Sequence[Any]) -> None:
        super().prepare_rows(shown)
        balances = ledger.balances({row.merchant_id for row in shown if row.merchant_id})
        for row in shown:
            row.balance = balances.get(row.merchant_id)

    def page_context(self, request: HttpRequest, row: Approval) -> dict[str, Any]:
        on_approval, on_rejection = effects(row)
        title = {"kind": row.get_kind_display(), "amount": money.display(row.amount)}
        return {
            "title": _("%(kind)s of %(amount)s") % title,
            "details": details(row),
            "on_approval": on_approval,
            "on_rejection": on_rejection,
            "own": services.own_request(row) if row.is_waiting else "",
        }

    @admin.display(description=gettext_lazy("age"))
    def age(self, row: Approval) -> str:
        text, is_old = age(row), clock.now() - row.requested_at > OVERDUE_AGE
        return format_html('<span class="state bad">{}</span>', text) if row.is_waiting and is_old else text

    @admin.display(description=gettext_lazy("destination"))
    def destination(self, row: Approval) -> str:
        """Without the name: the security log records only views of single approvals."""
        return account(row)

    @admin.display(description=gettext_lazy("balance"))
    def balance(self, row: Any) -> str | None:
        if row.balance and row.balance.debt:
            return format_html("{}<br>{}", _("debt"), debt(row.balance))
        return money.display(row.balance.available) if row.balance else None


def of_mode(approvals: Any, mode: str) -> Any:
    """Approvals of live or test money. Without a merchant, the bank of the money tells."""
    subject = OuterRef("subject_id")
    written_off = BankTransaction.objects.filter(pk=subject, bank=SANDBOX)
    returned = Return.objects.filter(pk=subject, bank_transaction__bank=SANDBOX)
    is_sandbox = Q(Exists(written_off) | Exists(returned))
    has_no_merchant = Q(merchant=None) & (is_sandbox if mode == Mode.TEST else ~is_sandbox)
    return approvals.filter(Q(merchant__mode=mode) | has_no_merchant)


def effects(approval: Approval) -> tuple[str, str]:
    """What happens if it is approved, and if it is rejected."""
    words = {
        "amount": money.display(approval.amount),
        "merchant": str(approval.merchant.name) if approval.merchant else _("no merchant"),
        "destination": destination(approval),
    }
    on_approval, on_rejection = EFFECTS[ApprovalKind(approval.kind)]
    return on_approval % words, on_rejection % words


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
    return _("...%(last4)s at %(bank)s") % {"last4": last4, "bank": thaibanks.label(approval.bank_code)}


def debt(balance: Balance) -> str:
    return format_html('<strong class="state bad">{}</strong>', money.display(balance.debt))


def age(approval: Approval) -> str:
    return clock.format_duration(clock.now() - approval.requested_at)


def _requester(approval: Approval) -> str:
    """A name, or a link to the API key."""
    kind, _separator, public_id = approval.requested_by.partition(":")
    key = ApiKey.objects.filter(public_id=public_id).first() if kind == "key" else None
    if key is None:
        return request_context.display_name(approval.requested_by)
    words = {"key": public_id, "issuer": request_context.display_name(key.issued_by)}
    text = _("API key %(key)s, issued by %(issuer)s") % words
    return _link("admin:merchants_apikey_change", key.pk, text)


def _time(approval: Approval) -> str:
    at = f"{localtime(approval.requested_at):%Y-%m-%d %H:%M:%S}"
    return _("%(at)s, %(age)s ago") % {"at": at, "age": age(approval)} if approval.is_waiting else at


def _link(page: str, pk: str, text: str) -> str:
    return format_html('<a href="{}">{}</a>', reverse(page, args=[quote(pk)]), text)
