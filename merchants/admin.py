"""Merchants, and their keys as buttons: issue, revoke. A key is shown once, after the click."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse

from core import clock
from core.admin import ReadOnlyAdmin
from merchants import services
from merchants.models import ApiKey, Merchant


@admin.register(Merchant)
class MerchantAdmin(ReadOnlyAdmin):
    list_display = ["id", "name", "mode", "bank", "biller_id", "created_at"]
    list_filter = ["mode", "bank"]
    search_fields = ["=id", "name", "=biller_id"]
    actions = ["issue_key"]

    @admin.action(description="Issue a secret key", permissions=["issue_key"])
    def issue_key(self, request: HttpRequest, chosen: QuerySet[Merchant]) -> HttpResponse | None:
        if chosen.count() != 1:
            messages.error(request, "Choose one merchant: its key is shown once, on the next page.")
            return None
        merchant = chosen.get()
        key, secret = services.issue_key(merchant=merchant, now=clock.now())
        self.log_change(request, merchant, f"issued key {key.id}")
        # In the answer itself: a message would leave the key in a cookie or the session table.
        context = {
            **self.admin_site.each_context(request),
            "merchant": merchant,
            "key": key,
            "secret": secret,
        }
        response = TemplateResponse(request, "admin/key_issued.html", context | {"title": "Secret key"})
        response.headers["Cache-Control"] = "no-store"
        return response

    def has_issue_key_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("merchants.add_apikey")


@admin.register(ApiKey)
class ApiKeyAdmin(ReadOnlyAdmin):
    list_display = ["id", "public_id", "merchant", "created_at", "expires_at", "revoked_at", "last_used_at"]
    list_select_related = ["merchant"]
    search_fields = ["=id", "=public_id", "=merchant__id"]
    fields = ["id", "merchant", "public_id", "created_at", "expires_at", "revoked_at", "last_used_at"]
    actions = ["revoke"]

    @admin.action(description="Revoke at once", permissions=["revoke"])
    def revoke(self, request: HttpRequest, chosen: QuerySet[ApiKey]) -> None:
        for key in chosen:
            services.revoke_key(key_id=key.id, now=clock.now())
            self.log_change(request, key, "revoked")
        messages.success(request, "Revoked.")

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("merchants.delete_apikey")

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).select_related("merchant")
