"""What only the people of a merchant do: they decide as its keys do, and withdraw to a listed account."""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

from django import forms
from django.utils.functional import Promise
from django.utils.translation import gettext as _, gettext_lazy

from approvals.models import PayoutAccount
from audit_trail.act_pages import ObjectAct, ReasonForm
from audit_trail.acts import Act, ActRefused
from core import money
from core.console.form_fields import BahtField
from payments.models import OPEN_STATUSES, PaymentException
from reconciliation.exceptions import merchant_decisions
from withdrawals import services as withdrawals
from withdrawals.models import Withdrawal

RETURNED = gettext_lazy("%(amount)s goes back to the account that it came from. Nothing can undo this.")
EXCESS_RETURNED = gettext_lazy(
    "The amount of the payment pays it, and the rest goes back to the account that it came from."
)


class ShopForm(ReasonForm):
    """Asks for no reason. Its values have the merchant of the person who acts."""

    reason = forms.CharField(required=False, max_length=500, widget=forms.HiddenInput)

    def clean(self) -> dict[str, Any]:
        return (super().clean() or self.cleaned_data) | {"merchant": self.user.membership.merchant}


class WithdrawForm(ReasonForm):
    amount = BahtField(label=gettext_lazy("Amount in baht"))


def _is_open(exception: PaymentException, now: datetime) -> bool:
    return exception.status in OPEN_STATUSES


def _explain(text: Promise) -> Callable[[PaymentException], str]:
    return lambda exception: str(text) % {"amount": money.display(exception.amount)}


def _send_back(part: str, exception: PaymentException, values: dict[str, Any], now: datetime) -> None:
    merchant_decisions.send_back(exception, part=part, note=values["reason"], now=now)


def _is_usable(account: PayoutAccount, now: datetime) -> bool:
    return account.removed_at is None and account.usable_at <= now


def _withdraw(account: PayoutAccount, values: dict[str, Any], now: datetime) -> Withdrawal:
    if not _is_usable(account, now):
        raise ActRefused(_("The account is not on the list, or its waiting period is not over."))
    return withdrawals.create(
        merchant=account.merchant,
        now=now,
        amount=values["amount"],
        bank_code=account.bank_code,
        bank_account=account.account,
        account_name=account.account_name,
        note=values["reason"],
    )


_decision = partial(ObjectAct, act=Act.EXCEPTION_RESOLVED, permission="shop.decide_exception")
_return = partial(_decision, is_dangerous=True, is_confirmed=True)
EXCEPTION_ACTS = (
    _decision(
        "accept", gettext_lazy("Accept the money"),
        explain=_explain(gettext_lazy("%(amount)s pays its payment, and joins your balance.")),
        run=lambda row, values, now: merchant_decisions.accept(row, note=values["reason"], now=now),
        is_possible=_is_open,
    ),
    _return(
        "send-back", gettext_lazy("Send it back"), explain=_explain(RETURNED), run=partial(_send_back, "all"),
        is_possible=_is_open,
    ),
    _return(
        "return-excess", gettext_lazy("Accept, and send the excess back"), explain=_explain(EXCESS_RETURNED),
        run=partial(_send_back, "excess"),
        is_possible=lambda row, now: _is_open(row, now) and row.amount > row.payment.amount,
    ),
)  # fmt: skip
WITHDRAW_ACT = ObjectAct(
    "withdraw", gettext_lazy("Withdraw to this account"), Act.WITHDRAWAL_CREATED, "shop.create_withdrawal",
    gettext_lazy(
        "Money of your balance goes to %(account)s. Above the limit somebody of the operator must approve it."
    ),
    _withdraw,
    words={"account": "__str__"}, is_possible=_is_usable, form=WithdrawForm, is_dangerous=True,
)  # fmt: skip
