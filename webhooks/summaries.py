"""The sentence with which the page of an endpoint or a delivery begins."""

from datetime import datetime

from django.contrib.admin.utils import quote
from django.urls import reverse
from django.utils.text import capfirst
from django.utils.timezone import localtime
from django.utils.translation import gettext as _, ngettext

from core import clock
from core.console.summaries import Summary
from webhooks import models


def of_endpoint(endpoint: models.Endpoint, now: datetime) -> Summary:
    """The most urgent of: it gets nothing, it fails, nobody knows whether it works."""
    health = endpoint.health
    if endpoint.deleted_at is not None:
        return Summary(_("It was deleted on %(at)s.") % {"at": clock.display(endpoint.deleted_at)}, "calm")
    if endpoint.status != models.EndpointStatus.ACTIVE:
        text = _("%(reason)s. Its events are held: enable it, then replay them.")
        is_wanted = endpoint.disabled_reason == models.DisabledReason.MERCHANT
        reason = endpoint.get_disabled_reason_display()
        return Summary(text % {"reason": reason}, "calm" if is_wanted else "bad")
    tone = "good" if health.verified_at else "wait"
    if health.state != models.HealthState.HEALTHY:
        tone = "bad"
    elif health.latency_ms is None:
        tone = "calm"
    return Summary(f"{capfirst(describe_health(health, now))}.", tone)


def describe_health(health: models.EndpointHealth, now: datetime) -> str:
    """Describe the health of an endpoint for staff, with times in the time zone of the console."""
    parts = []
    if health.paused_until is not None:
        until = localtime(health.paused_until)
        if until > now:
            values = {"at": f"{until:%H:%M:%S}", "seconds": f"{health.pause_seconds:g}"}
            parts.append(_("paused until %(at)s, %(seconds)s s") % values)
        else:
            at = {"at": clock.display(until)}
            parts.append(_("sends one delivery at a time since %(at)s") % at)
    if count := health.consecutive_failures:
        text = ngettext(
            "%(count)s failure in a row, last: %(error)s",
            "%(count)s failures in a row, last: %(error)s",
            count,
        )
        parts.append(text % {"count": count, "error": health.last_error})
    if not parts and health.latency_ms is None:
        parts = [_("no requests yet")]
    elif not parts:
        parts = [_("healthy, answers in about %(ms)s ms") % {"ms": health.latency_ms}]
    lately = ", ".join(parts)
    return lately if health.verified_at else _("unverified, %(lately)s") % {"lately": lately}


def of_delivery(delivery: models.Delivery, now: datetime) -> Summary:
    """What became of it, with a link to the endpoint if that is the cause."""
    endpoint, last = delivery.endpoint, delivery.attempt_set.order_by("-number").first()
    to = endpoint.url or endpoint.recipient
    error = (f"HTTP {last.status}" if last.status else last.error) if last else "-"
    at = clock.display(delivery.finished_at or delivery.due_at)
    values = {"to": to, "at": at, "error": error, "number": delivery.attempt_count}
    url, link = reverse("admin:webhooks_endpoint_change", args=[quote(endpoint.pk)]), _("See the endpoint")
    match models.DeliveryState(delivery.state):
        case models.DeliveryState.SUCCEEDED:
            return Summary(_("%(to)s accepted it on %(at)s.") % values, "good")
        case models.DeliveryState.HELD:
            text = _("It is held because the endpoint is disabled. Enable it, then replay what was held.")
            return Summary(text, "wait", url, link)
        case models.DeliveryState.FAILED:
            text = _("%(to)s did not accept it: %(error)s. It is not sent again by itself.")
            return Summary(text % values, "bad", url, link)
        case models.DeliveryState.PENDING if endpoint.health.state == models.HealthState.PAUSED:
            values["health"] = describe_health(endpoint.health, now)
            return Summary(_("It waits for the endpoint: %(health)s.") % values, "wait", url, link)
        case models.DeliveryState.PENDING if last is not None:
            text = _("Attempt %(number)s failed: %(error)s. The next one is on %(at)s.")
            return Summary(text % values, "wait", url, link)
        case models.DeliveryState.PENDING:
            return Summary(_("It is sent on %(at)s.") % values, "info")
