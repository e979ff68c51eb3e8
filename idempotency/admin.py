from django.contrib import admin

from core.admin import ReadOnlyAdmin
from idempotency.models import IdempotencyKey


@admin.register(IdempotencyKey)
class IdempotencyKeyAdmin(ReadOnlyAdmin):
    list_display = ["key", "merchant", "status", "created_at", "expires_at"]
    list_select_related = ["merchant"]
    fields = ["merchant", "key", "status", "created_at", "expires_at"]
    search_fields = ["=key"]
