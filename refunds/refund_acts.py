"""What staff can do to a refund."""

from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from audit_trail.act_pages import ObjectAct
from audit_trail.acts import Act
from core import money
from refunds import claims, services
from refunds.models import ClaimLinkStatus, Refund, RefundStatus


def _explain_cancel(refund: Refund) -> str:
    return _(
        "%(amount)s is available to %(merchant)s again. This is possible until the bank has the order."
    ) % {"amount": money.display(refund.amount), "merchant": refund.merchant.name}


def _cancel(refund: Refund, values: dict[str, Any], now: datetime) -> None:
    services.cancel(merchant=refund.merchant, refund_id=refund.id, now=now)


def _is_pending(refund: Refund, now: datetime) -> bool:
    return refund.status == RefundStatus.PENDING


def _explain_revoke(refund: Refund) -> str:
    return _("The payer cannot name an account by the link any more. The merchant can make a new one.")


def _revoke_link(refund: Refund, values: dict[str, Any], now: datetime) -> None:
    claims.revoke(refund_id=refund.id, now=now)


def _has_open_link(refund: Refund, now: datetime) -> bool:
    link = claims.newest(refund)
    return link is not None and link.status_at(now) in (ClaimLinkStatus.OPEN, ClaimLinkStatus.BLOCKED)


REFUND_ACTS = (
    ObjectAct(
        slug="revoke-claim-link",
        label=gettext_lazy("Revoke the claim link"),
        act=Act.CLAIM_LINK_REVOKED,
        permission="refunds.revoke_claimlink",
        explain=_explain_revoke,
        run=_revoke_link,
        is_possible=_has_open_link,
        is_dangerous=True,
    ),
    ObjectAct(
        slug="cancel",
        label=gettext_lazy("Cancel the refund"),
        act=Act.REFUND_CANCELED,
        permission="refunds.cancel_refund",
        explain=_explain_cancel,
        run=_cancel,
        is_possible=_is_pending,
        is_dangerous=True,
    ),
)
