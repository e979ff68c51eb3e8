"""What staff can do to a refund."""

from datetime import datetime
from typing import Any

from django.utils.translation import gettext_lazy as _

from audit_trail.act_pages import ObjectAct
from audit_trail.acts import Act
from refunds import claims, services
from refunds.explanations import LINK_REVOKED
from refunds.models import ClaimLinkStatus, Refund, RefundStatus
from transfers.explanations import CANCEL, with_amount


def _cancel(refund: Refund, values: dict[str, Any], now: datetime) -> None:
    services.cancel(merchant=refund.merchant, refund_id=refund.id, now=now)


def _has_open_link(refund: Refund, now: datetime) -> bool:
    link = claims.newest(refund)
    return link is not None and link.status_at(now) in (ClaimLinkStatus.OPEN, ClaimLinkStatus.BLOCKED)


REFUND_ACTS: tuple[ObjectAct, ...] = (
    ObjectAct(
        "revoke-claim-link", _("Revoke the claim link"), Act.CLAIM_LINK_REVOKED,
        "refunds.revoke_claimlink",
        lambda _refund: str(LINK_REVOKED),
        lambda refund, values, now: claims.revoke(refund_id=refund.id, now=now),
        is_possible=_has_open_link, is_dangerous=True,
    ),
    ObjectAct(
        "cancel", _("Cancel the refund"), Act.REFUND_CANCELED, "refunds.cancel_refund",
        with_amount(CANCEL),
        _cancel,
        is_possible=lambda refund, now: refund.status == RefundStatus.PENDING, is_dangerous=True,
    ),
)  # fmt: skip
