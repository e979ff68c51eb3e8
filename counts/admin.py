from django.contrib import admin

from core.admin import ReadOnlyAdmin
from counts.models import CountDelta, ListCount


@admin.register(ListCount)
class ListCountAdmin(ReadOnlyAdmin):
    list_display = ["owner_id", "list", "kind", "bucket", "starts_at", "count"]
    list_filter = ["bucket", "list"]
    search_fields = ["=owner_id"]


@admin.register(CountDelta)
class CountDeltaAdmin(ReadOnlyAdmin):
    list_display = ["owner_id", "list", "kind", "minute", "delta"]
    search_fields = ["=owner_id"]
