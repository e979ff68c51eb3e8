"""What staff can do to a delivery."""

from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from audit_trail.act_pages import ObjectAct
from audit_trail.acts import Act
from webhooks import redelivery
from webhooks.models import Delivery, EndpointStatus


def _explain(delivery: Delivery) -> str:
    values = {"type": delivery.event_type, "url": delivery.endpoint.url}
    return _("%(type)s is sent to %(url)s once more, now, with the same event id.") % values


def _resend(delivery: Delivery, values: dict[str, Any], now: datetime) -> Delivery:
    return redelivery.redeliver(
        merchant=delivery.endpoint.merchant,
        webhook_id=delivery.endpoint_id,
        delivery_id=delivery.id,
        now=now,
    )


def _is_possible(delivery: Delivery, now: datetime) -> bool:
    return delivery.endpoint.status == EndpointStatus.ACTIVE and delivery.endpoint.deleted_at is None


DELIVERY_ACTS = (
    ObjectAct(
        slug="resend",
        label=gettext_lazy("Send again"),
        act=Act.DELIVERY_RESENT,
        permission="webhooks.resend_delivery",
        explain=_explain,
        run=_resend,
        is_possible=_is_possible,
    ),
)
