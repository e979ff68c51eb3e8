from django.contrib import admin

from core.admin import ReadOnlyAdmin
from operations.models import Heartbeat


@admin.register(Heartbeat)
class HeartbeatAdmin(ReadOnlyAdmin):
    list_display = ["name", "recorded_at"]
