"""What staff can do about outgoing money that waits for a second person: approve or reject it."""

from collections.abc import Callable
from datetime import datetime
from functools import partial
from typing import Any

from django.utils.translation import gettext_lazy

from approvals import services
from approvals.models import Approval, ApprovalKind
from audit_trail.act_pages import ObjectAct
from audit_trail.acts import Act
from console import approval_page
from reconciliation.exceptions import approval_handlers as movements
from refunds import services as refunds
from withdrawals import services as withdrawals

DECIDE_PERMISSION = "approvals.decide_approval"
HANDLERS: dict[str, services.ApprovalHandler] = {
    ApprovalKind.WITHDRAWAL: withdrawals.APPROVAL_HANDLER,
    ApprovalKind.REFUND: refunds.APPROVAL_HANDLER,
    **movements.HANDLERS,
}


def _decide(
    decide: Callable[..., Approval], approval: Approval, values: dict[str, Any], now: datetime
) -> None:
    decide(approval.id, HANDLERS[approval.kind], note=values["reason"], now=now)


def _is_decidable(approval: Approval, now: datetime) -> bool:
    return approval.is_waiting and not services.own_request(approval)


APPROVAL_ACTS = (
    ObjectAct(
        slug="approve",
        label=gettext_lazy("Approve"),
        act=Act.APPROVED,
        permission=DECIDE_PERMISSION,
        explain=lambda approval: approval_page.effects(approval)[0],
        run=partial(_decide, services.approve),
        is_possible=_is_decidable,
    ),
    ObjectAct(
        slug="reject",
        label=gettext_lazy("Reject"),
        act=Act.REJECTED,
        permission=DECIDE_PERMISSION,
        explain=lambda approval: approval_page.effects(approval)[1],
        run=partial(_decide, services.reject),
        is_possible=_is_decidable,
        is_dangerous=True,
    ),
)
