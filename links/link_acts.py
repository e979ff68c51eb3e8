"""What staff can do to a payment link."""

from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from audit_trail.act_pages import ObjectAct
from audit_trail.acts import Act
from links import services
from links.models import PaymentLink, PaymentLinkStatus


def _deactivate(link: PaymentLink, values: dict[str, Any], now: datetime) -> None:
    services.deactivate(payment_link_id=link.id, merchant=link.merchant, now=now)


LINK_ACTS = (
    ObjectAct(
        slug="deactivate",
        label=gettext_lazy("Deactivate the payment link"),
        act=Act.LINK_DEACTIVATED,
        permission="links.deactivate_paymentlink",
        explain=lambda link: _(
            "Its page makes no more codes. Codes that customers have can still be paid until they expire. "
            "Nothing can undo this."
        ),
        run=_deactivate,
        is_possible=lambda link, now: services.status_of(link, now) == PaymentLinkStatus.ACTIVE,
        is_dangerous=True,
    ),
)
