"""What staff can do to a webhook endpoint, and to a delivery."""

from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from audit_trail.act_pages import ObjectAct
from audit_trail.acts import Act
from audit_trail.recording import recorded
from webhooks import destinations, endpoints, redelivery
from webhooks.forms import DestinationForm
from webhooks.models import DisabledReason, Endpoint, EndpointStatus


def _is_active(endpoint: Endpoint, now: datetime) -> bool:
    return endpoint.status == EndpointStatus.ACTIVE and endpoint.deleted_at is None


def _replay(endpoint: Endpoint, values: dict[str, Any], now: datetime) -> None:
    redelivery.replay_held(endpoint_id=endpoint.id, now=now)


def _add(row: None, values: dict[str, Any], now: datetime) -> Endpoint:
    names = "type", "to", "events", "language", "quiet_hours"
    fields = {name: values[name] for name in names} | {"token": values["line_token"]}
    with transaction.atomic(), recorded(Act.DESTINATION_ADDED) as added:
        added.row = made = destinations.create(merchant=values.get("merchant"), now=now, **fields)
    return made


NEW_DESTINATION_ACTS = (
    ObjectAct(
        slug="add-destination",
        label=gettext_lazy("Add a destination for staff"),
        act=Act.DESTINATION_ADDED,
        permission="webhooks.manage_destinations",
        explain=lambda row: _(
            "You get messages about what waits for you, by LINE or email. Send a test on the next page."
        ),
        run=_add,
        form=DestinationForm,
        is_recorded_by_service=True,
    ),
)
ENDPOINT_ACTS = (
    ObjectAct(
        slug="test",
        label=gettext_lazy("Send a test event"),
        act=Act.ENDPOINT_TESTED,
        permission="webhooks.resend_delivery",
        explain=lambda endpoint: (
            _("A test message is sent to %(url)s once. The list of deliveries shows the answer.")
            % {"url": endpoint.url or endpoint.recipient}
        ),
        run=lambda endpoint, values, now: redelivery.test(
            merchant=endpoint.merchant,
            webhook_id=endpoint.id,
            now=now,
            not_found=endpoints.not_found(endpoint),
        ),
        is_possible=_is_active,
    ),
    ObjectAct(
        slug="skip-pause",
        label=gettext_lazy("Skip the pause"),
        act=Act.PAUSE_SKIPPED,
        permission="webhooks.skip_pause",
        explain=lambda endpoint: _(
            "One delivery is sent now. If it succeeds, the others follow; if not, the pause begins again."
        ),
        run=lambda endpoint, values, now: endpoints.skip_pause(endpoint_id=endpoint.id, now=now),
        is_possible=lambda endpoint, now: _is_active(endpoint, now) and bool(endpoint.health.paused_until),
    ),
    ObjectAct(
        slug="replay",
        label=gettext_lazy("Replay held deliveries"),
        act=Act.DELIVERIES_REPLAYED,
        permission="webhooks.replay_deliveries",
        explain=lambda endpoint: _(
            "All events that were held while it was disabled are sent now, the oldest first."
        ),
        run=_replay,
        is_possible=_is_active,
    ),
    ObjectAct(
        slug="disable",
        label=gettext_lazy("Disable"),
        act=Act.ENDPOINT_DISABLED,
        permission="webhooks.disable_endpoint",
        explain=lambda endpoint: (
            _(
                "Nothing more is sent to %(url)s. New events are held, and can be replayed when it is "
                "enabled again."
            )
            % {"url": endpoint.url or endpoint.recipient}
        ),
        run=lambda endpoint, values, now: endpoints.disable(
            endpoint_id=endpoint.id, reason=DisabledReason.STAFF, now=now
        ),
        is_possible=_is_active,
        is_dangerous=True,
    ),
    ObjectAct(
        slug="enable",
        label=gettext_lazy("Enable"),
        act=Act.ENDPOINT_ENABLED,
        permission="webhooks.enable_endpoint",
        explain=lambda endpoint: (
            _(
                "New events are sent to %(url)s from now on, and its failures are forgotten. Held events "
                "stay held until they are replayed."
            )
            % {"url": endpoint.url or endpoint.recipient}
        ),
        run=lambda endpoint, values, now: endpoints.enable(endpoint_id=endpoint.id, now=now),
        is_possible=lambda endpoint, now: (
            endpoint.status != EndpointStatus.ACTIVE and endpoint.deleted_at is None
        ),
    ),
    ObjectAct(
        slug="delete",
        label=gettext_lazy("Delete"),
        act=Act.DESTINATION_DELETED,
        permission="webhooks.manage_destinations",
        explain=lambda endpoint: (
            _("%(to)s gets no more messages. Nothing can undo this.") % {"to": endpoint.recipient}
        ),
        run=lambda endpoint, values, now: endpoints.delete(
            merchant=None, webhook_id=endpoint.id, now=now, not_found=endpoints.not_found(endpoint)
        ),
        is_possible=lambda endpoint, now: endpoint.merchant_id is None and endpoint.deleted_at is None,
        is_dangerous=True,
    ),
)
DELIVERY_ACTS = (
    ObjectAct(
        slug="resend",
        label=gettext_lazy("Send again"),
        act=Act.DELIVERY_RESENT,
        permission="webhooks.resend_delivery",
        explain=lambda delivery: (
            _("%(type)s is sent to %(url)s once more, now, with the same event id.")
            % {
                "type": delivery.event_type,
                "url": delivery.endpoint.url or delivery.endpoint.recipient,
            }
        ),
        run=lambda delivery, values, now: redelivery.redeliver(
            merchant=delivery.endpoint.merchant,
            webhook_id=delivery.endpoint_id,
            delivery_id=delivery.id,
            now=now,
            not_found=endpoints.not_found(delivery.endpoint),
        ),
        is_possible=lambda delivery, now: _is_active(delivery.endpoint, now),
    ),
)
