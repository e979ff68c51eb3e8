from django.contrib import admin

from core.admin import ReadOnlyAdmin
from webhooks.models import Attempt, Delivery, Endpoint, EndpointAct, Event


@admin.register(Endpoint)
class EndpointAdmin(ReadOnlyAdmin):
    list_display = [
        "id",
        "merchant",
        "url",
        "status",
        "disabled_reason",
        "last_ping_status",
        "created_at",
        "deleted_at",
    ]
    list_filter = ["status", ("deleted_at", admin.EmptyFieldListFilter)]
    list_select_related = ["merchant"]
    search_fields = ["=id", "=merchant__id", "url"]


@admin.register(EndpointAct)
class EndpointActAdmin(ReadOnlyAdmin):
    list_display = ["id", "at", "endpoint", "act", "actor", "detail"]
    list_filter = ["act"]
    list_select_related = ["endpoint"]
    search_fields = ["=endpoint__id", "=endpoint__merchant__id", "=actor"]


@admin.register(Event)
class EventAdmin(ReadOnlyAdmin):
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
    list_display = ["id", "event", "endpoint", "state", "resend", "attempts", "due_at", "finished_at"]
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
