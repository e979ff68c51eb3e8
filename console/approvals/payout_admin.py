"""The console pages of payout accounts, and what staff can do to the list of a merchant."""

from datetime import datetime
from functools import partial
from typing import Any

from django.conf import settings
from django.core.exceptions import ValidationError
from django.http import HttpRequest
from django.utils.translation import gettext as _, gettext_lazy

from approvals import payout_accounts
from approvals.models import PayoutAccount
from approvals.payout_accounts import PayoutAccountListed, PayoutAccountNotFound
from audit_trail.act_pages import ActingAdmin, ObjectAct, ReasonForm
from audit_trail.acts import Act
from audit_trail.pages import ReadOnlyAdmin
from core.console import admin_columns
from merchants.models import Merchant
from reconciliation.exceptions.exception_acts import ACCOUNT_FIELDS, AccountFields


class PayoutAccountForm(AccountFields, ReasonForm):
    """The account to add. Its fields are checked as in the API."""


def _explain_add(merchant: Merchant) -> str:
    text = _(
        "The account joins the list of %(name)s. It can be used %(hours)s hours later. Until then, no money "
        "goes to it if the list is on. An account on the list never changes: remove a wrong one."
    )
    return text % {"name": merchant.name, "hours": f"{settings.PAYOUT_ACCOUNT_WAITING_HOURS:g}"}


def _add(merchant: Merchant, values: dict[str, Any], now: datetime) -> PayoutAccount:
    account = {name: values[name] for name in ACCOUNT_FIELDS}
    try:
        return payout_accounts.add(merchant, **account, now=now)
    except PayoutAccountListed:
        raise ValidationError({"bank_account": _("It is on this merchant's list already.")}) from None


def _explain_restrict(merchant: Merchant) -> str:
    listed = PayoutAccount.objects.filter(merchant=merchant, removed_at=None).count()
    text = _(
        "From now on, money of %(name)s goes only to its listed accounts, of which it has %(count)s. "
        "Withdrawals to other accounts are refused, and refunds to accounts that are not the payer's."
    )
    return text % {"name": merchant.name, "count": listed}


def _restrict(is_on: bool, merchant: Merchant, values: dict[str, Any], now: datetime) -> None:
    payout_accounts.restrict(merchant, is_on, now=now)


def _is_restricted(is_on: bool, merchant: Merchant, now: datetime) -> bool:
    return payout_accounts.is_restricted(merchant.pk) == is_on


def _remove(account: PayoutAccount, values: dict[str, Any], now: datetime) -> None:
    try:
        payout_accounts.remove(account.pk, now=now)
    except PayoutAccountNotFound:
        raise ValidationError(_("It was removed before: nothing changed.")) from None


_act = partial(ObjectAct, is_recorded_by_service=True)
_switch = partial(
    _act, act=Act.PAYOUT_LIST_SWITCHED, permission="approvals.change_payoutpolicy", is_dangerous=True
)
# On the page of the merchant.
PAYOUT_ACTS = (
    _act(
        "add-payout-account", gettext_lazy("Add a payout account"), Act.PAYOUT_ACCOUNT_ADDED,
        "approvals.add_payoutaccount",
        _explain_add,
        _add,
        form=PayoutAccountForm,
    ),
    _switch(
        "switch-payout-list-on", gettext_lazy("Switch the list on"), explain=_explain_restrict,
        run=partial(_restrict, True),
        is_possible=partial(_is_restricted, False),
    ),
    _switch(
        "switch-payout-list-off", gettext_lazy("Switch the list off"),
        explain=gettext_lazy(
            "From now on, withdrawals and refunds of %(name)s may go to any account. Whoever has a key "
            "of the merchant can send its money there, up to the limits."
        ),
        run=partial(_restrict, False),
        words={"name": "name"}, is_possible=partial(_is_restricted, True),
    ),
)  # fmt: skip
# On the page of the account.
PAYOUT_ACCOUNT_ACTS = (
    _act(
        "remove", gettext_lazy("Remove from the list at once"), Act.PAYOUT_ACCOUNT_REMOVED,
        "approvals.delete_payoutaccount",
        gettext_lazy(
            "If the list of %(name)s is on, no more money goes to this account. To use it again, "
            "somebody must add it again, and its waiting period begins again."
        ),
        _remove,
        words={"name": "merchant.name"}, is_possible=lambda account, now: account.removed_at is None,
        is_dangerous=True,
    ),
)  # fmt: skip


class PayoutAccountAdmin(ActingAdmin):
    shows_personal_data = True
    mode_column = "merchant__mode"
    list_display = ["id", "merchant", "bank_code", "account_last4", "added_by", "usable_at", "removed_at"]
    list_select_related = ["merchant"]
    search_fields = ["=id", "=merchant__id"]
    scanned_fields = ("account_last4",)
    search_help_text = gettext_lazy(
        "Search by id of an account or a merchant, or its last four digits. "
        "Add accounts on the page of the merchant."
    )
    ordering = ["-added_at", "-id"]
    sortable_by = ("added_at",)
    object_acts = PAYOUT_ACCOUNT_ACTS

    def get_fields(self, request: HttpRequest, obj: Any = None) -> Any:
        return admin_columns.readable_fields(PayoutAccount)


class PayoutPolicyAdmin(ReadOnlyAdmin):
    mode_column = "merchant__mode"
    list_display = ["merchant", "is_restricted", "changed_by", "changed_at"]
    list_select_related = ["merchant"]
    search_fields = ["=merchant__id"]
    sortable_by = ("merchant",)
