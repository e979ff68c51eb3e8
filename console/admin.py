from django.contrib import admin

from console.models import Heartbeat
from core.admin import ReadOnlyAdmin

admin.site.site_header = "Thai QR Payments"
admin.site.site_title = "Thai QR Payments"
admin.site.site_url = "/docs"


@admin.register(Heartbeat)
class HeartbeatAdmin(ReadOnlyAdmin):
    list_display = ["name", "at"]
