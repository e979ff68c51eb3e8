"""What staff can do to a refund."""

from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from audit_trail.act_pages import ObjectAct
from audit_trail.acts import Act
from core import money
from refunds import services
from refunds.models import Refund, RefundStatus


def _explain_cancel(refund: Refund) -> str:
    return _(
        "%(amount)s is available to %(merchant)s again. This is possible until the bank has the order."
    ) % {"amount": money.display(refund.amount), "merchant": refund.merchant.name}


def _cancel(refund: Refund, values: dict[str, Any], now: datetime) -> None:
    services.cancel(merchant=refund.merchant, refund_id=refund.id, now=now)


def _is_pending(refund: Refund, now: datetime) -> bool:
    return refund.status == RefundStatus.PENDING


REFUND_ACTS = (
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
