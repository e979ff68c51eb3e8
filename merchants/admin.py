"""Console pages of merchants, API keys and bank connections."""

from typing import Any

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import URLPattern, path
from django.utils.html import format_html
from django.utils.translation import gettext, gettext_lazy as _

import banks
from audit_trail.act_pages import ActingAdmin
from audit_trail.pages import ReadOnlyAdmin
from core import plain_text
from core.console.admin_columns import column
from core.console.admin_filters import MAX_LENGTH
from merchants import admin_filters, bank_connections
from merchants.bank_acts import BANK_ACTS
from merchants.merchant_acts import KEY_ACTS, MERCHANT_ACTS, NEW_MERCHANT_ACTS
from merchants.models import ApiKey, BankConnection, Merchant


class MerchantAdmin(ActingAdmin):
    """`console` registers a subclass whose page shows all of a merchant."""

    mode_column = "mode"
    list_display = [
        *("id", "name", "mode", "bank", "biller_id", "late_money", "refuses_open_reference"),
        *("suspended_at", "moved_at", "created_at"),
    ]
    list_filter = ["bank", "uses_standby", "late_money", ("suspended_at", admin.EmptyFieldListFilter)]
    search_fields = ["=id", "name", "=biller_id"]
    sortable_by = ("name", "created_at")
    list_acts = NEW_MERCHANT_ACTS
    object_acts = MERCHANT_ACTS + BANK_ACTS

    @admin.display(description=_("Proof page"))
    def proof_page(self, merchant: Merchant) -> Any:
        if not merchant.shows_proof:
            return gettext("not public")
        return format_html('<a href="/proof/{0}">/proof/{0}</a>', merchant.pk)

    def get_urls(self) -> list[URLPattern]:
        suggest = self.admin_site.admin_view(self.suggest)
        return [path("suggest/", suggest, name="merchants_merchant_suggest"), *super().get_urls()]

    def suggest(self, request: HttpRequest) -> HttpResponse:
        """Merchants for what somebody has typed into a filter."""
        if not self.has_view_permission(request):
            raise PermissionDenied
        text = plain_text.visible(request.GET.get("q", ""))[:MAX_LENGTH]
        found = admin_filters.find(text)
        # Each text names only this merchant.
        return JsonResponse({"suggestions": [f"{each.name} {each.id}" for each in found]})


@admin.register(BankConnection)
class BankConnectionAdmin(ReadOnlyAdmin):
    """Written by acts on the page of the merchant, and by `manage.py connect_bank`."""

    mode_column = "merchant__mode"
    list_display = ["merchant", "bank", "callers", "updated_at"]
    list_select_related = ["merchant"]
    list_filter = ["bank"]
    search_fields = ["=merchant__id", "merchant__name"]
    fields = ["merchant", "bank", "authentication", "credentials", "callers", "created_at", "updated_at"]
    readonly_fields = ["authentication", "credentials"]

    credentials = column(_("Credentials"), bank_connections.described_credentials)
    authentication = column(
        _("How the bank authenticates"),
        lambda connection: gettext(banks.LIVE_BANKS[connection.bank].authentication_note),
    )


@admin.register(ApiKey)
class ApiKeyAdmin(ActingAdmin):
    mode_column = "merchant__mode"
    list_display = [
        "id", "public_id", "merchant", "scopes", "created_at", "expires_at", "revoked_at",
        "last_used_at",
    ]  # fmt: skip
    list_select_related = ["merchant"]
    search_fields = ["=id", "=public_id", "=merchant__id"]
    fields = [
        "id", "merchant", "public_id", "scopes", "networks", "issued_by", "created_at", "expires_at",
        "revoked_at", "revoked_by", "last_used_at", "seen_networks",
    ]  # fmt: skip
    object_acts = KEY_ACTS
