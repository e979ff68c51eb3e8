"""The sentence with which the page of an endpoint or a delivery begins."""

from datetime import datetime

from django.contrib.admin.utils import quote
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from core import clock
from core.console.summaries import Summary
from webhooks.models import Delivery, DeliveryState, DisabledReason, Endpoint, EndpointStatus, HealthState


def of_endpoint(endpoint: Endpoint, now: datetime) -> Summary:
    """The most urgent of: it gets nothing, it fails, nobody knows whether it works."""
    health = endpoint.health
    if endpoint.deleted_at is not None:
        return Summary(_("It was deleted on %(at)s.") % {"at": clock.display(endpoint.deleted_at)}, "calm")
    if endpoint.status != EndpointStatus.ACTIVE:
        text = _("%(reason)s. Its events are held: enable it, then replay them.")
        is_wanted = endpoint.disabled_reason == DisabledReason.MERCHANT
        reason = endpoint.get_disabled_reason_display()
        return Summary(text % {"reason": reason}, "calm" if is_wanted else "bad")
    if health.state != HealthState.HEALTHY:
        failures = ngettext(
            "%(count)s request in a row failed, with %(error)s.",
            "%(count)s requests in a row failed, the last with %(error)s.",
            health.consecutive_failures,
        ) % {"count": health.consecutive_failures, "error": health.last_error}
        return Summary(f"{failures} {_of_pause(endpoint, now)}", "bad")
    if health.latency_ms is None:
        return Summary(_("Nothing was sent to it yet."), "calm")
    if health.verified_at is None:
        return Summary(_("It has not accepted a message yet."), "wait")
    return Summary(_("It works, and answers in about %(ms)s ms.") % {"ms": health.latency_ms}, "good")


def _of_pause(endpoint: Endpoint, now: datetime) -> str:
    until = endpoint.health.paused_until
    if until is None:
        return _("They are sent again by themselves.")
    if until <= now:
        return _("It was paused, and gets one delivery at a time.")
    return _("It is paused until %(at)s, then one delivery tries it.") % {"at": clock.display(until)}


def of_delivery(delivery: Delivery, now: datetime) -> Summary:
    """What became of it, with a link to the endpoint if that is the cause."""
    endpoint, last = delivery.endpoint, delivery.attempt_set.order_by("-number").first()
    to = endpoint.url or endpoint.recipient
    error = (f"HTTP {last.status}" if last.status else last.error) if last else "-"
    at = clock.display(delivery.finished_at or delivery.due_at)
    values = {"to": to, "at": at, "error": error, "number": delivery.attempt_count}
    url, link = reverse("admin:webhooks_endpoint_change", args=[quote(endpoint.pk)]), _("See the endpoint")
    match DeliveryState(delivery.state):
        case DeliveryState.SUCCEEDED:
            return Summary(_("%(to)s accepted it on %(at)s.") % values, "good")
        case DeliveryState.HELD:
            text = _("It is held because the endpoint is disabled. Enable it, then replay what was held.")
            return Summary(text, "wait", url, link)
        case DeliveryState.FAILED:
            text = _("%(to)s did not accept it: %(error)s. It is not sent again by itself.")
            return Summary(text % values, "bad", url, link)
        case DeliveryState.PENDING if endpoint.health.state == HealthState.PAUSED:
            waits = _("It waits for the endpoint.")
            return Summary(f"{waits} {_of_pause(endpoint, now)}", "wait", url, link)
        case DeliveryState.PENDING if last is not None:
            text = _("Attempt %(number)s failed: %(error)s. The next one is on %(at)s.")
            return Summary(text % values, "wait", url, link)
        case DeliveryState.PENDING:
            return Summary(_("It is sent on %(at)s.") % values, "info")
