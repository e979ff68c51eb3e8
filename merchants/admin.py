"""Console pages of merchants, API keys and bank connections. A new key is shown once."""

from typing import Any

from django.contrib import admin, messages
from django.db.models import QuerySet
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.translation import gettext_lazy as _

import banks
from core import clock
from core.admin import ReadOnlyAdmin
from merchants import bank_connections, services
from merchants.forms import IssueKeyForm
from merchants.models import ApiKey, BankConnection, LateMoneyPolicy, Merchant


@admin.register(Merchant)
class MerchantAdmin(ReadOnlyAdmin):
    list_display = ["id", "name", "mode", "bank", "biller_id", "late_money", "created_at"]
    list_filter = ["mode", "bank", "late_money"]
    search_fields = ["=id", "name", "=biller_id"]
    sortable_by = ("name", "created_at")
    actions = ["issue_key", "accept_late_money", "review_late_money"]

    @admin.action(description=_("Issue a secret key"), permissions=["issue_key"])
    def issue_key(self, request: HttpRequest, selected: QuerySet[Merchant]) -> HttpResponse | None:
        if selected.count() != 1:
            messages.error(request, "Choose one merchant: its key is shown once, on the next page.")
            return None
        merchant, is_filled = selected.get(), "issue" in request.POST
        may_withdraw = request.user.has_perm("merchants.issue_withdrawal_key")
        form = IssueKeyForm(request.POST if is_filled else None, may_withdraw=may_withdraw)
        context = {**self.admin_site.each_context(request), "merchant": merchant, "form": form}
        issued = form.issue(merchant, clock.now()) if is_filled else None
        if issued is None:
            title = {"title": "Issue a secret key"}
            return TemplateResponse(request, "admin/issue_key.html", context | title)
        key, secret = issued
        # The page shows the key: a message would store it in a cookie or in the session table.
        context |= {"title": "Secret key", "key": key, "secret": secret}
        response = TemplateResponse(request, "admin/key_issued.html", context)
        response.headers["Cache-Control"] = "no-store"
        return response

    @admin.action(description=_("Accept payments after expiry"), permissions=["decide"])
    def accept_late_money(self, request: HttpRequest, selected: QuerySet[Merchant]) -> None:
        self._set_late_money(request, selected, LateMoneyPolicy.ACCEPT)

    @admin.action(description=_("Review payments after expiry"), permissions=["decide"])
    def review_late_money(self, request: HttpRequest, selected: QuerySet[Merchant]) -> None:
        self._set_late_money(request, selected, LateMoneyPolicy.REVIEW)

    def _set_late_money(
        self, request: HttpRequest, selected: QuerySet[Merchant], late_money: LateMoneyPolicy
    ) -> None:
        for merchant in selected:
            services.set_late_money_policy(merchant_id=merchant.id, late_money=late_money)
        messages.success(request, "Done.")

    def has_decide_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("merchants.set_late_money")

    def has_issue_key_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("merchants.issue_key")


@admin.register(BankConnection)
class BankConnectionAdmin(ReadOnlyAdmin):
    """Written by `manage.py connect_bank`, which shows the notification address once."""

    list_display = ["merchant", "bank", "callers", "updated_at"]
    list_select_related = ["merchant"]
    list_filter = ["bank"]
    search_fields = ["=merchant__id", "merchant__name"]
    fields = ["merchant", "bank", "authentication", "credentials", "callers", "created_at", "updated_at"]
    readonly_fields = ["authentication", "credentials"]

    @admin.display(description=_("Credentials"))
    def credentials(self, connection: BankConnection) -> str:
        return ", ".join(
            f"{name}: {shown}" for name, shown in bank_connections.masked_credentials(connection).items()
        )

    @admin.display(description=_("How the bank authenticates"))
    def authentication(self, connection: BankConnection) -> str:
        return banks.LIVE_BANKS[connection.bank].authentication_note

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).select_related("merchant")


@admin.register(ApiKey)
class ApiKeyAdmin(ReadOnlyAdmin):
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
    actions = ["revoke"]

    @admin.action(description=_("Revoke at once"), permissions=["revoke"])
    def revoke(self, request: HttpRequest, selected: QuerySet[ApiKey]) -> None:
        for key in selected:
            services.revoke_key(key_id=key.id, now=clock.now())
        messages.success(request, "Revoked.")

    def has_revoke_permission(self, request: HttpRequest) -> bool:
        return request.user.has_perm("merchants.revoke_key")

    def get_queryset(self, request: HttpRequest) -> Any:
        return super().get_queryset(request).select_related("merchant")
