"""What staff can do to a webhook endpoint."""

from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from audit_trail.act_pages import ObjectAct
from audit_trail.acts import Act
from webhooks import endpoints, redelivery
from webhooks.models import Delivery, DisabledReason, Endpoint, EndpointStatus


def _is_active(endpoint: Endpoint, now: datetime) -> bool:
    return endpoint.status == EndpointStatus.ACTIVE and endpoint.deleted_at is None


def _is_disabled(endpoint: Endpoint, now: datetime) -> bool:
    return endpoint.status != EndpointStatus.ACTIVE and endpoint.deleted_at is None


def _is_paused(endpoint: Endpoint, now: datetime) -> bool:
    health = getattr(endpoint, "health", None)
    return _is_active(endpoint, now) and health is not None and health.paused_until is not None


def _explain_disable(endpoint: Endpoint) -> str:
    return _(
        "Nothing more is sent to %(url)s. New events are held, and can be replayed when it is enabled again."
    ) % {"url": endpoint.url}


def _disable(endpoint: Endpoint, values: dict[str, Any], now: datetime) -> None:
    endpoints.disable(endpoint_id=endpoint.id, reason=DisabledReason.STAFF, now=now)


def _explain_enable(endpoint: Endpoint) -> str:
    return _(
        "New events are sent to %(url)s from now on, and its failures are forgotten. Held events stay held "
        "until they are replayed."
    ) % {"url": endpoint.url}


def _enable(endpoint: Endpoint, values: dict[str, Any], now: datetime) -> None:
    endpoints.enable(endpoint_id=endpoint.id, now=now)


def _explain_pause(endpoint: Endpoint) -> str:
    return _("One delivery is sent now. If it succeeds, the others follow; if not, the pause begins again.")


def _skip_pause(endpoint: Endpoint, values: dict[str, Any], now: datetime) -> None:
    endpoints.skip_pause(endpoint_id=endpoint.id, now=now)


def _explain_replay(endpoint: Endpoint) -> str:
    return _("All events that were held while it was disabled are sent now, the oldest first.")


def _replay(endpoint: Endpoint, values: dict[str, Any], now: datetime) -> None:
    redelivery.replay_held(endpoint_id=endpoint.id, now=now)


def _explain_test(endpoint: Endpoint) -> str:
    return _("A signed webhook.ping is sent to %(url)s once. The list of deliveries shows the answer.") % {
        "url": endpoint.url
    }


def _test(endpoint: Endpoint, values: dict[str, Any], now: datetime) -> Delivery:
    return redelivery.test(merchant=endpoint.merchant, webhook_id=endpoint.id, now=now)


ENDPOINT_ACTS = (
    ObjectAct(
        slug="test",
        label=gettext_lazy("Send a test event"),
        act=Act.ENDPOINT_TESTED,
        permission="webhooks.resend_delivery",
        explain=_explain_test,
        run=_test,
        is_possible=_is_active,
    ),
    ObjectAct(
        slug="skip-pause",
        label=gettext_lazy("Skip the pause"),
        act=Act.PAUSE_SKIPPED,
        permission="webhooks.skip_pause",
        explain=_explain_pause,
        run=_skip_pause,
        is_possible=_is_paused,
    ),
    ObjectAct(
        slug="replay",
        label=gettext_lazy("Replay held deliveries"),
        act=Act.DELIVERIES_REPLAYED,
        permission="webhooks.replay_deliveries",
        explain=_explain_replay,
        run=_replay,
        is_possible=_is_active,
    ),
    ObjectAct(
        slug="disable",
        label=gettext_lazy("Disable"),
        act=Act.ENDPOINT_DISABLED,
        permission="webhooks.disable_endpoint",
        explain=_explain_disable,
        run=_disable,
        is_possible=_is_active,
        is_dangerous=True,
    ),
    ObjectAct(
        slug="enable",
        label=gettext_lazy("Enable"),
        act=Act.ENDPOINT_ENABLED,
        permission="webhooks.enable_endpoint",
        explain=_explain_enable,
        run=_enable,
        is_possible=_is_disabled,
    ),
)
