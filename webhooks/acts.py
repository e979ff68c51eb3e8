"""What staff can do to a webhook endpoint, and to a delivery."""

from datetime import datetime
from functools import partial
from typing import Any

from django.db import transaction
from django.utils.translation import gettext_lazy

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
        slug="add-destination",
        label=gettext_lazy("Add a destination for staff"),
        act=Act.ENDPOINT_ADDED,
        permission="webhooks.manage_destinations",
        explain=gettext_lazy(
            "You get messages about what waits for you, by LINE or email. Send a test on the next page."
        ),
        run=_add,
        form=DestinationForm,
        is_recorded_by_service=True,
    ),
)
ENDPOINT_ACTS = (
    _act(
        slug="test",
        label=gettext_lazy("Send a test event"),
        act=Act.ENDPOINT_TESTED,
        permission="webhooks.resend_delivery",
        explain=gettext_lazy(
            "A test message is sent to %(url)s once. The list of deliveries shows the answer."
        ),
        run=lambda endpoint, values, now: redelivery.test(endpoint, now=now),
    ),
    _act(
        slug="skip-pause",
        label=gettext_lazy("Skip the pause"),
        act=Act.PAUSE_SKIPPED,
        permission="webhooks.skip_pause",
        explain=gettext_lazy(
            "One delivery is sent now. If it succeeds, the others follow; if not, the pause begins again."
        ),
        run=lambda endpoint, values, now: endpoints.skip_pause(endpoint_id=endpoint.id, now=now),
        is_possible=lambda endpoint, now: _is_active(endpoint, now) and bool(endpoint.health.paused_until),
    ),
    _act(
        slug="replay",
        label=gettext_lazy("Replay held deliveries"),
        act=Act.DELIVERIES_REPLAYED,
        permission="webhooks.replay_deliveries",
        explain=gettext_lazy(
            "All events that were held while it was disabled are sent now, the oldest first."
        ),
        run=lambda endpoint, values, now: redelivery.replay_held(endpoint, now=now),
    ),
    _act(
        slug="disable",
        label=gettext_lazy("Disable"),
        act=Act.ENDPOINT_DISABLED,
        permission="webhooks.disable_endpoint",
        explain=gettext_lazy(
            "Nothing more is sent to %(url)s. New events are held, and can be replayed when it is "
            "enabled again."
        ),
        run=lambda endpoint, values, now: endpoints.disable(
            endpoint_id=endpoint.id, reason=DisabledReason.STAFF, now=now
        ),
        is_dangerous=True,
    ),
    _act(
        slug="enable",
        label=gettext_lazy("Enable"),
        act=Act.ENDPOINT_ENABLED,
        permission="webhooks.enable_endpoint",
        explain=gettext_lazy(
            "New events are sent to %(url)s from now on, and its failures are forgotten. Held events "
            "stay held until they are replayed."
        ),
        run=lambda endpoint, values, now: endpoints.enable(endpoint_id=endpoint.id, now=now),
        is_possible=lambda endpoint, now: (
            endpoint.status != EndpointStatus.ACTIVE
            and endpoint.deleted_at is None
            and endpoint.disabled_reason != DisabledReason.MOVED
        ),
    ),
)
DELETE_ACT = ObjectAct(
    slug="delete",
    label=gettext_lazy("Delete"),
    act=Act.ENDPOINT_DELETED,
    permission="webhooks.manage_destinations",
    explain=gettext_lazy("%(url)s gets no more messages. Nothing can undo this."),
    words={"url": "address"},
    run=_delete,
    is_possible=lambda endpoint, now: endpoint.merchant_id is None and endpoint.deleted_at is None,
    is_dangerous=True,
)
DELIVERY_ACTS = (
    ObjectAct(
        slug="resend",
        label=gettext_lazy("Send again"),
        act=Act.DELIVERY_RESENT,
        permission="webhooks.resend_delivery",
        explain=gettext_lazy("%(type)s is sent to %(url)s once more, now, with the same event id."),
        words={"type": "event_type", "url": "endpoint.address"},
        run=lambda delivery, values, now: redelivery.redeliver(
            delivery.endpoint, delivery_id=delivery.id, now=now
        ),
        is_possible=lambda delivery, now: _is_active(delivery.endpoint, now),
    ),
)
