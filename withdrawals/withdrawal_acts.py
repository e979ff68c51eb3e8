"""What staff can do to a withdrawal."""

from datetime import datetime
from typing import Any

from django.utils.translation import gettext_lazy as _

from audit_trail.act_pages import ObjectAct
from audit_trail.acts import Act
from transfers.explanations import CANCEL, with_amount
from withdrawals import services
from withdrawals.models import Withdrawal, WithdrawalStatus


def _cancel(withdrawal: Withdrawal, values: dict[str, Any], now: datetime) -> None:
    services.cancel(withdrawal_id=withdrawal.id, now=now)


WITHDRAWAL_ACTS: tuple[ObjectAct, ...] = (
    ObjectAct(
        "cancel", _("Cancel the withdrawal"), Act.WITHDRAWAL_CANCELED,
        "withdrawals.cancel_withdrawal",
        with_amount(CANCEL),
        _cancel,
        is_possible=lambda withdrawal, now: withdrawal.status == WithdrawalStatus.PENDING, is_dangerous=True,
    ),
)  # fmt: skip
