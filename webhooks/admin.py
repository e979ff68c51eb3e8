"""Console pages of webhooks, and the actions of staff on endpoints."""

from collections.abc import Iterable

from django.contrib import admin
from django.utils.html import format_html, format_html_join
from django.utils.translation import gettext, gettext_lazy as _

from audit_trail.act_pages import ActingAdmin
from audit_trail.pages import ReadOnlyAdmin
from core import clock, request_context
from core.console import admin_columns, personal_data
from core.console.admin_columns import column
from core.console.admin_lists import DateFilter
from merchants.admin_filters import NewestOfMerchantFilter
from webhooks import models, summaries
from webhooks.acts import DELETE_ACT, DELIVERY_ACTS, ENDPOINT_ACTS, NEW_DESTINATION_ACTS
from webhooks.messages import texts

MAX_SHOWN = 20
MAX_SEARCHED = 200  # the page searches only this many of the newest deliveries for failures


def describe_state(endpoint: models.Endpoint) -> str:
    """What somebody must know first about an endpoint, as coloured words."""
    if endpoint.deleted_at is not None:
        return admin_columns.badge("deleted", _("Deleted"))
    status = admin_columns.badge(endpoint.status, endpoint.get_status_display())
    if endpoint.status != models.EndpointStatus.ACTIVE:
        return format_html("{}: {}", status, endpoint.get_disabled_reason_display().lower())
    if endpoint.health.state != models.HealthState.HEALTHY:
        return admin_columns.badge(endpoint.health.state, endpoint.health.state.label)
    if endpoint.health.verified_at is None:
        return admin_columns.badge("unverified", _("not verified yet"))
    return status


def _html_list(lines: Iterable[str]) -> str:
    return format_html("<ul>{}</ul>", format_html_join("", "<li>{}</li>", ((line,) for line in lines)))


@admin.register(models.Endpoint)
class EndpointAdmin(ActingAdmin):
    object_acts, list_acts = (*ENDPOINT_ACTS, DELETE_ACT), NEW_DESTINATION_ACTS
    summary_of = staticmethod(summaries.of_endpoint)
    mode_column = "merchant__mode"
    list_display = ["id", "merchant", "type", "address", "state", "current_health", "created_at"]
    list_filter = [
        "type",
        "status",
        "disabled_reason",
        ("health__verified_at", admin.EmptyFieldListFilter),
        ("deleted_at", admin.EmptyFieldListFilter),
    ]
    list_select_related = ["merchant", "health"]
    search_fields = ["=id", "=merchant__id", "url", "=recipient"]
    fields = [
        *("merchant", "type", "url", "recipient", "state", "current_health", "events", "language"),
        *("quiet_hours", "created_at", "deleted_at", "recent_actions", "latest_failures"),
    ]
    readonly_fields = ["state", "current_health", "recent_actions", "latest_failures"]

    address = column(_("address"), lambda endpoint: endpoint.address or "-")
    state = column(_("status"), describe_state)
    current_health = column(
        _("health"), lambda endpoint: summaries.describe_health(endpoint.health, clock.now())
    )

    @admin.display(description=_("history"))
    def recent_actions(self, endpoint: models.Endpoint) -> str:
        recent = models.EndpointAction.objects.filter(endpoint=endpoint).order_by("-id")[:MAX_SHOWN]
        lines = []
        for each in recent:
            actor = request_context.display_name(each.actor)
            done = gettext("%(type)s by %(actor)s") % {"type": each.get_type_display(), "actor": actor}
            done = done if actor else str(each.get_type_display())
            detail = f": {each.detail}" if each.detail else ""
            lines.append(f"{clock.display(each.created_at)} {done}{detail}")
        return _html_list(lines)

    @admin.display(description=_("latest failures"))
    def latest_failures(self, endpoint: models.Endpoint) -> str:
        newest = models.Delivery.objects.filter(endpoint=endpoint).order_by("-created_at", "-id")
        attempts = models.DeliveryAttempt.objects.filter(
            delivery__in=list(newest.values_list("pk", flat=True)[:MAX_SEARCHED])
        )
        failures = attempts.exclude(error="").order_by("-started_at")
        return _html_list(
            f"{clock.display(each.started_at)} {each.delivery_id} #{each.number}: {each.error}"
            + (f", HTTP {each.status}" if each.status else "")
            for each in failures[:MAX_SHOWN]
        )


@admin.register(models.EndpointHealth)
class EndpointHealthAdmin(ReadOnlyAdmin):
    mode_column = "endpoint__merchant__mode"
    list_display = [
        *("endpoint", "verified_at", "consecutive_failures"),
        *("failing_since", "last_error", "paused_until", "latency_ms"),
    ]
    list_filter = [
        ("verified_at", admin.EmptyFieldListFilter),
        ("paused_until", admin.EmptyFieldListFilter),
        "last_error",
    ]
    list_select_related = ["endpoint"]
    search_fields = ["=endpoint__id", "=endpoint__merchant__id"]
    readonly_fields = ["description"]

    description = column(_("summary"), lambda health: summaries.describe_health(health, clock.now()))


@admin.register(models.EndpointAction)
class EndpointActionAdmin(ReadOnlyAdmin):
    mode_column = "endpoint__merchant__mode"
    list_display = ["id", "created_at", "endpoint", "type", "actor", "detail"]
    list_filter = ["type"]
    list_select_related = ["endpoint"]
    search_fields = ["=endpoint__id", "=endpoint__merchant__id", "=actor"]


@admin.register(models.Event)
class EventAdmin(ReadOnlyAdmin):
    shows_personal_data = True
    mode_column = "merchant__mode"
    list_display = ["id", "type", "subject_id", "merchant", "created_at"]
    list_filter = [NewestOfMerchantFilter, "type", DateFilter]
    list_select_related = ["merchant"]
    search_fields = ["=id", "=subject_id"]
    readonly_fields = ["body_text"]

    body_text = column(_("Body"), lambda event: personal_data.message(event.body.decode()))


class DeliveryAttemptInline(admin.TabularInline):  # type: ignore[type-arg]
    model = models.DeliveryAttempt
    fields = ["number", "started_at", "duration_ms", "status", "error", "excerpt"]
    extra = 0
    can_delete = False


class DeliveryMerchantFilter(NewestOfMerchantFilter):
    lookup = "endpoint__merchant"


@admin.register(models.Delivery)
class DeliveryAdmin(ActingAdmin):
    shows_personal_data = True
    object_acts = DELIVERY_ACTS
    summary_of = staticmethod(summaries.of_delivery)
    mode_column = "endpoint__merchant__mode"
    list_display = ["id", "event_name", "address", "state_now", "attempt_count", "due_at", "finished_at"]
    export_columns = (*("id", "event_type", "endpoint", "state", "attempt_count", "due_at", "finished_at"),)
    fields = [
        *("event_name", "event", "endpoint", "state_now", "attempt_count", "created_at", "finished_at"),
        *("requested_at", "request_body", "actor", "request_id"),
    ]
    readonly_fields = ["event_name", "state_now", "request_body"]
    list_filter = [DeliveryMerchantFilter, "state", DateFilter]
    list_select_related = ["event", "endpoint__health"]
    search_fields = ["=id", "=event__id", "=event__subject_id", "=endpoint__id"]
    inlines = [DeliveryAttemptInline]

    address = column(_("address"), lambda delivery: delivery.endpoint.url or delivery.endpoint.recipient)
    request_body = column(_("request"), lambda delivery: personal_data.message(delivery.event.body.decode()))

    @admin.display(description=_("event"))
    def event_name(self, delivery: models.Delivery) -> str:
        """In words, with the name that the merchant's system knows."""
        words = texts.WORDS.get(delivery.event_type)
        return f"{words} ({delivery.event_type})" if words else delivery.event_type

    @admin.display(description=_("state"))
    def state_now(self, delivery: models.Delivery) -> str:
        """A pending one says what it waits for."""
        if delivery.state != models.DeliveryState.PENDING or not delivery.attempt_count:
            return admin_columns.badge(delivery.state, delivery.get_state_display())
        health = delivery.endpoint.health.state
        if health == models.HealthState.PAUSED:
            return admin_columns.badge(health, health.label)
        return admin_columns.badge("failing", models.HealthState.FAILING.label)


@admin.register(models.DeliveryAttempt)
class DeliveryAttemptAdmin(ReadOnlyAdmin):
    mode_column = "delivery__endpoint__merchant__mode"
    list_display = ["id", "delivery", "number", "trigger", "started_at", "duration_ms", "status", "error"]
    list_filter = ["trigger", "error"]
    list_select_related = ["delivery"]
    search_fields = ["=delivery__id", "=delivery__event__id"]
