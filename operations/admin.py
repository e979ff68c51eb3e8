import json
from typing import Any

from django.contrib import admin
from django.contrib.admin.utils import unquote
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.urls import URLPattern, path, reverse
from django.utils.html import format_html
from django.utils.translation import gettext_lazy as _

from core.admin import ReadOnlyAdmin
from operations.models import DailyClose, Heartbeat


@admin.register(Heartbeat)
class HeartbeatAdmin(ReadOnlyAdmin):
    list_display = ["name", "recorded_at"]


@admin.register(DailyClose)
class DailyCloseAdmin(ReadOnlyAdmin):
    """The closes of days, with the signed file of each."""

    list_display = ["day", "number", "hash", "file"]
    fields = ["day", "number", "hash", "previous_hash", "signature", "public_key", "file", "body"]

    def get_urls(self) -> list[URLPattern]:
        view = self.admin_site.admin_view(self.download_view)
        urls: list[URLPattern] = super().get_urls()
        return [path("<str:object_id>/download/", view, name="operations_dailyclose_download"), *urls]

    def download_view(self, request: HttpRequest, object_id: str) -> HttpResponse:
        """The signed text and its signature. `daily_close --check` verifies this file."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        close = self.get_object(request, unquote(object_id))
        if close is None:
            raise Http404
        given = {"body": close.body, "signature": close.signature, "public_key": close.public_key}
        response = HttpResponse(json.dumps(given), content_type="application/json")
        response.headers["Content-Disposition"] = f'attachment; filename="daily-close-{close.day}.json"'
        return response

    @admin.display(description=_("signed file"))
    def file(self, close: Any) -> str:
        url = reverse("admin:operations_dailyclose_download", args=[close.pk])
        return format_html('<a href="{}">{}</a>', url, _("Download"))
