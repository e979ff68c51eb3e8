"""What staff can do to a payment link."""

from django.utils.translation import gettext as _, gettext_lazy

from audit_trail.act_pages import ObjectAct
from audit_trail.acts import Act
from links import services
from links.models import PaymentLinkStatus

LINK_ACTS = (
    ObjectAct(
        "deactivate", gettext_lazy("Deactivate the payment link"), Act.LINK_DEACTIVATED,
        "links.deactivate_paymentlink",
        lambda link: _(
            "Its page makes no more codes. Codes that customers have can still be paid until they expire. "
            "Nothing can undo this."
        ),
        lambda link, values, now: services.deactivate(link, now=now),
        is_possible=lambda link, now: link.status_at(now) == PaymentLinkStatus.ACTIVE, is_dangerous=True,
    ),
)  # fmt: skip
