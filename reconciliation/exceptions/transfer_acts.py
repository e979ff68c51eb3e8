"""What staff can do to an order to a bank, after they asked the bank."""

from datetime import datetime, timedelta
from functools import partial
from typing import Any

from django.utils.translation import gettext_lazy as _

from audit_trail.act_pages import ObjectAct
from audit_trail.acts import Act
from banks import TransferResult
from reconciliation.matching import order_completion
from transfers import explanations, services as transfers
from transfers.models import Transfer, TransferState
from transfers.schedule import OVERDUE_AFTER


def _complete(result: TransferResult, transfer: Transfer, values: Any, now: datetime) -> Act | None:
    is_over = order_completion.complete_by_staff(transfer.id, result, now=now)
    return None if is_over else Act.COMPLETION_REQUESTED


def is_overdue(transfer: Transfer, now: datetime) -> bool:
    """Whether the bank has had the order for so long that staff should ask it."""
    waited = now - transfer.submitted_at if transfer.submitted_at else timedelta(0)
    return transfer.state == TransferState.SUBMITTED and waited >= OVERDUE_AFTER


_completed = partial(
    ObjectAct, act=Act.TRANSFER_COMPLETED, permission="transfers.complete_transfer", is_possible=is_overdue
)
TRANSFER_ACTS = (
    _completed(
        "arrived", _("Mark as arrived"),
        explain=explanations.with_amount(explanations.MARK_ARRIVED),
        run=partial(_complete, transfers.ARRIVED),
    ),
    _completed(
        "never-arrived", _("Mark as never arrived"),
        explain=explanations.with_amount(explanations.MARK_NEVER_ARRIVED),
        run=partial(_complete, transfers.NEVER_ARRIVED),
        is_dangerous=True,
    ),
    ObjectAct(
        "cancel", _("Cancel: the bank was never reached"), Act.TRANSFER_CANCELED,
        "transfers.cancel_transfer",
        explanations.with_amount(explanations.CANCEL_UNSENT),
        lambda transfer, values, now: order_completion.cancel_unsent(transfer.id, now=now),
        is_possible=lambda transfer, now: transfer.state == TransferState.QUEUED, is_dangerous=True,
    ),
)  # fmt: skip
