"""What staff can do to a webhook endpoint, and to a delivery."""

from datetime import datetime
from functools import partial
from typing import Any

from django.db import transaction
from django.utils.translation import gettext_lazy as _

from audit_trail.act_pages import ObjectAct
from audit_trail.acts import Act
from audit_trail.recording import recorded
from webhooks import destinations, endpoints, redelivery
from webhooks.errors import DestinationNotFound
from webhooks.forms import DestinationForm
from webhooks.models import DisabledReason, Endpoint, EndpointStatus


def _is_active(endpoint: Endpoint, now: datetime) -> bool:
    return endpoint.status == EndpointStatus.ACTIVE and endpoint.deleted_at is None


def _add(row: None, values: dict[str, Any], now: datetime) -> Endpoint:
    names = "type", "to", "events", "language", "quiet_hours"
    fields = {name: values[name] for name in names} | {"token": values["line_token"]}
    with transaction.atomic(), recorded(Act.ENDPOINT_ADDED) as added:
        added.row = made = destinations.create(merchant=values.get("merchant"), now=now, **fields)
    return made


def _delete(endpoint: Endpoint, values: dict[str, Any], now: datetime) -> None:
    """Staff delete only what is the operator's."""
    if endpoint.merchant_id is not None:
        raise DestinationNotFound(id=endpoint.pk)
    endpoints.delete(endpoint, now=now)


_act = partial(ObjectAct, is_possible=_is_active, words={"url": "address"})
NEW_DESTINATION_ACTS = (
    ObjectAct(
        "add-destination", _("Add a destination for staff"), Act.ENDPOINT_ADDED,
        "webhooks.manage_destinations",
        _("You get messages about what waits for you, by LINE or email. Send a test on the next page."),
        _add,
        form=DestinationForm, is_recorded_by_service=True,
    ),
)  # fmt: skip
ENDPOINT_ACTS = (
    _act(
        "test", _("Send a test event"), Act.ENDPOINT_TESTED, "webhooks.resend_delivery",
        _("A test message is sent to %(url)s once. The list of deliveries shows the answer."),
        lambda endpoint, values, now: redelivery.test(endpoint, now=now),
    ),
    _act(
        "skip-pause", _("Skip the pause"), Act.PAUSE_SKIPPED, "webhooks.skip_pause",
        _("One delivery is sent now. If it succeeds, the others follow; if not, the pause begins again."),
        lambda endpoint, values, now: endpoints.skip_pause(endpoint_id=endpoint.id, now=now),
        is_possible=lambda endpoint, now: _is_active(endpoint, now) and bool(endpoint.health.paused_until),
    ),
    _act(
        "replay", _("Replay held deliveries"), Act.DELIVERIES_REPLAYED,
        "webhooks.replay_deliveries",
        _("All events that were held while it was disabled are sent now, the oldest first."),
        lambda endpoint, values, now: redelivery.replay_held(endpoint, now=now),
    ),
    _act(
        "disable", _("Disable"), Act.ENDPOINT_DISABLED, "webhooks.disable_endpoint",
        _(
            "Nothing more is sent to %(url)s. New events are held, and can be replayed when it is "
            "enabled again."
        ),
        lambda endpoint, values, now: endpoints.disable(
            endpoint_id=endpoint.id, reason=DisabledReason.STAFF, now=now
        ),
        is_dangerous=True,
    ),
    _act(
        "enable", _("Enable"), Act.ENDPOINT_ENABLED, "webhooks.enable_endpoint",
        _(
            "New events are sent to %(url)s from now on, and its failures are forgotten. Held events "
            "stay held until they are replayed."
        ),
        lambda endpoint, values, now: endpoints.enable(endpoint_id=endpoint.id, now=now),
        is_possible=lambda endpoint, now: (
            endpoint.status != EndpointStatus.ACTIVE
            and endpoint.deleted_at is None
            and endpoint.disabled_reason != DisabledReason.MOVED
        ),
    ),
)  # fmt: skip
DELETE_ACT = ObjectAct(
    "delete", _("Delete"), Act.ENDPOINT_DELETED, "webhooks.manage_destinations",
    _("%(url)s gets no more messages. Nothing can undo this."),
    _delete,
    words={"url": "address"},
    is_possible=lambda endpoint, now: endpoint.merchant_id is None and endpoint.deleted_at is None,
    is_dangerous=True,
)  # fmt: skip
DELIVERY_ACTS = (
    ObjectAct(
        "resend", _("Send again"), Act.DELIVERY_RESENT, "webhooks.resend_delivery",
        _("%(type)s is sent to %(url)s once more, now, with the same event id."),
        lambda delivery, values, now: redelivery.redeliver(
            delivery.endpoint, delivery_id=delivery.id, now=now
        ),
        words={"type": "event_type", "url": "endpoint.address"},
        is_possible=lambda delivery, now: _is_active(delivery.endpoint, now),
    ),
)  # fmt: skip
