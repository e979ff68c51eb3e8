"""What staff see of webhooks, and what they can do about an endpoint."""

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial
from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest
from django.template.defaultfilters import pluralize
from django.utils.html import format_html, format_html_join
from django.utils.timezone import localtime

from core import clock
from core.admin import ReadOnlyAdmin
from core.errors import ApiError
from webhooks import acts, endpoints, replays
from webhooks.models import Attempt, Delivery, DisabledReason, Endpoint, EndpointAct, Event, Health, Tally

SHOWN = 20
# Failures are looked for among so many of an endpoint's newest deliveries, or the page would read them all.
LOOKED_AT = 200


def in_words(health: Health | None, now: datetime) -> str:
    """How an endpoint does, for a person; times are of the console's time zone."""
    if health is None or health.verified_at is None:
        return "unverified, " + _lately(health, now)
    return _lately(health, now)


def _lately(health: Health | None, now: datetime) -> str:
    if health is None:
        return "never asked"
    if health.paused_until is not None:
        return _pause(health, health.paused_until, now) + (
            f", after {_failures(health)}" if health.failures else ""
        )
    if health.failures:
        return _failures(health)
    answers = health.latency_ms is not None
    return f"healthy, answers within {health.latency_ms} ms or so" if answers else "never asked"


def _pause(health: Health, until: datetime, now: datetime) -> str:
    if until > now:
        return f"paused until {localtime(until):%H:%M:%S}, {health.pause_seconds:g} s"
    return f"asked one delivery at a time since {localtime(until):%Y-%m-%d %H:%M:%S}"


def _failures(health: Health) -> str:
    return f"{health.failures} failure{pluralize(health.failures)} in a row, last: {health.last_error}"


def _listed(lines: Iterable[str]) -> str:
    return format_html("<ul>{}</ul>", format_html_join("", "<li>{}</li>", ((line,) for line in lines)))


@admin.register(Endpoint)
class EndpointAdmin(ReadOnlyAdmin):
    list_display = [
        "id",
        "merchant",
        "url",
        "status",
        "disabled_reason",
        "health_now",
        "created_at",
        "deleted_at",
    ]
    list_filter = [
        "status",
        "disabled_reason",
        ("health__verified_at", admin.EmptyFieldListFilter),
        ("deleted_at", admin.EmptyFieldListFilter),
    ]
    list_select_related = ["merchant", "health"]
    search_fields = ["=id", "=merchant__id", "url"]
    readonly_fields = ["health_now", "recent_acts", "latest_failures"]
    actions = ["disable", "enable", "try_now", "replay_held"]

    @admin.display(description="health")
    def health_now(self, endpoint: Endpoint) -> str:
        return in_words(getattr(endpoint, "health", None), clock.now())

    @admin.display(description="what happened")
    def recent_acts(self, endpoint: Endpoint) -> str:
        recent = EndpointAct.objects.filter(endpoint=endpoint).order_by("-id")[:SHOWN]
        return _listed(
            f"{localtime(each.at):%Y-%m-%d %H:%M:%S} {each.get_act_display().lower()} by {each.actor}"
            + (f": {each.detail}" if each.detail else "")
            for each in recent
        )

    @admin.display(description="latest failures")
    def latest_failures(self, endpoint: Endpoint) -> str:
        newest = Delivery.objects.filter(endpoint=endpoint).order_by("-created_at", "-id")
        attempts = Attempt.objects.filter(delivery__in=list(newest.values_list("pk", flat=True)[:LOOKED_AT]))
        failures = attempts.exclude(error="").order_by("-started_at")
        return _listed(
            f"{localtime(each.started_at):%Y-%m-%d %H:%M:%S} {each.delivery_id} #{each.number}: {each.error}"
            + (f", HTTP {each.status}" if each.status else "")
            for each in failures[:SHOWN]
        )

    @admin.action(description="Disable: hold what it should be told", permissions=["manage"])
    def disable(self, request: HttpRequest, chosen: "QuerySet[Endpoint]") -> None:
        self._each(request, chosen, "disabled", partial(endpoints.disable, reason=DisabledReason.STAFF))

    @admin.action(description="Enable, and forget how it failed", permissions=["manage"])
    def enable(self, request: HttpRequest, chosen: "QuerySet[Endpoint]") -> None:
        self._each(request, chosen, "enabled", endpoints.enable)

    @admin.action(description="Try now: do not wait for the end of a pause", permissions=["manage"])
    def try_now(self, request: HttpRequest, chosen: "QuerySet[Endpoint]") -> None:
        self._each(request, chosen, "tried", endpoints.try_now)

    @admin.action(description="Replay what was held while it was disabled", permissions=["manage"])
    def replay_held(self, request: HttpRequest, chosen: "QuerySet[Endpoint]") -> None:
        self._each(request, chosen, "replayed", replays.replay_held)

    def has_manage_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("webhooks.change_endpoint")

    def _each(
        self, request: HttpRequest, chosen: "QuerySet[Endpoint]", said: str, act: Callable[..., Any]
    ) -> None:
        actor = acts.staff(request.user.get_username())
        for endpoint in chosen:
            try:
                act(endpoint_id=endpoint.id, actor=actor, now=clock.now())
            except ApiError as refusal:
                messages.error(request, f"{endpoint.id}: {refusal}")
            else:
                self.log_change(request, endpoint, said)
                messages.success(request, f"{endpoint.id}: {said}.")


@admin.register(Health)
class HealthAdmin(ReadOnlyAdmin):
    list_display = [
        "endpoint",
        "verified_at",
        "failures",
        "failing_since",
        "last_error",
        "paused_until",
        "latency_ms",
    ]
    list_filter = [
        ("verified_at", admin.EmptyFieldListFilter),
        ("paused_until", admin.EmptyFieldListFilter),
        "last_error",
    ]
    list_select_related = ["endpoint"]
    search_fields = ["=endpoint__id", "=endpoint__merchant__id"]
    readonly_fields = ["in_words"]

    @admin.display(description="in words")
    def in_words(self, health: Health) -> str:
        return in_words(health, clock.now())


@admin.register(EndpointAct)
class EndpointActAdmin(ReadOnlyAdmin):
    list_display = ["id", "at", "endpoint", "act", "actor", "detail"]
    list_filter = ["act"]
    list_select_related = ["endpoint"]
    search_fields = ["=endpoint__id", "=endpoint__merchant__id", "=actor"]


@admin.register(Event)
class EventAdmin(ReadOnlyAdmin):
    shows_personal_data = True
    list_display = ["id", "type", "subject_id", "merchant", "created_at"]
    list_filter = ["type"]
    list_select_related = ["merchant"]
    search_fields = ["=id", "=subject_id"]
    readonly_fields = ["body_text"]

    @admin.display(description="Body")
    def body_text(self, event: Event) -> str:
        return bytes(event.body).decode()


class AttemptInline(admin.TabularInline):  # type: ignore[type-arg]
    model = Attempt
    extra = 0
    can_delete = False


@admin.register(Delivery)
class DeliveryAdmin(ReadOnlyAdmin):
    list_display = [
        "id",
        "event",
        "endpoint",
        "state",
        "resend",
        "asked_by",
        "attempts",
        "due_at",
        "finished_at",
    ]
    list_filter = ["state"]
    list_select_related = ["event", "endpoint"]
    search_fields = ["=id", "=event__id", "=event__subject_id", "=endpoint__id"]
    inlines = [AttemptInline]


@admin.register(Attempt)
class AttemptAdmin(ReadOnlyAdmin):
    list_display = ["id", "delivery", "number", "trigger", "started_at", "duration_ms", "status", "error"]
    list_filter = ["trigger", "error"]
    list_select_related = ["delivery"]
    search_fields = ["=delivery__id", "=delivery__event__id"]


@admin.register(Tally)
class TallyAdmin(ReadOnlyAdmin):
    list_display = ["what", "outcome", "within_ms", "count", "total_ms"]
    list_filter = ["what", "outcome"]
