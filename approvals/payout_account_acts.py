"""What staff can do to a payout account."""

from datetime import datetime
from typing import Any

from django.core.exceptions import ValidationError
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from approvals import payout_accounts
from approvals.models import PayoutAccount
from approvals.payout_accounts import PayoutAccountNotFound
from audit_trail.act_pages import ObjectAct
from audit_trail.acts import Act


def _explain_remove(account: PayoutAccount) -> str:
    text = _(
        "If the list of %(name)s is on, no more money goes to this account. To use it again, somebody must "
        "add it again, and its waiting period begins again."
    )
    return text % {"name": account.merchant.name}


def _remove(account: PayoutAccount, values: dict[str, Any], now: datetime) -> None:
    try:
        payout_accounts.remove(account.pk, now=now)
    except PayoutAccountNotFound:
        raise ValidationError(_("It was removed before: nothing changed.")) from None


def _is_listed(account: PayoutAccount, now: datetime) -> bool:
    return account.removed_at is None


PAYOUT_ACCOUNT_ACTS = (
    ObjectAct(
        slug="remove",
        label=gettext_lazy("Remove from the list at once"),
        act=Act.PAYOUT_ACCOUNT_REMOVED,
        permission="approvals.delete_payoutaccount",
        explain=_explain_remove,
        run=_remove,
        is_possible=_is_listed,
        is_dangerous=True,
        is_recorded_by_service=True,
    ),
)
