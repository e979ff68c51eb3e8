"""The admin site of the console: Django's, with navigation by task."""

from functools import partial
from typing import Any

from django.contrib import admin
from django.db import transaction
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.urls import path
from django.utils.functional import SimpleLazyObject
from django.utils.translation import gettext_lazy as _
from django.views.i18n import set_language

from audit_trail import recording
from audit_trail.acts import Act
from console import navigation, search
from console.home import page


class ConsoleSite(admin.AdminSite):
    site_header = site_title = "Thai QR Payments"
    index_title = _("Home")
    site_url = "/docs"
    enable_nav_sidebar = False  # templates/admin/base_site.html has its own

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        return super().index(request, page.context(request) | (extra_context or {}))

    @transaction.atomic
    def password_change(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        """Django's page, in one transaction with its record."""
        user: Any = request.user
        before = user.password
        response = super().password_change(request, extra_context)
        if user.password != before:
            recording.write(Act.PASSWORD_CHANGED, user)
        return response

    def get_urls(self) -> list[Any]:
        found = self.admin_view(partial(search.view, self))
        return [
            path("search/", found, name="search"),
            path("language/", set_language, name="language"),
            *super().get_urls(),
        ]

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        """Add the menu, which is made only if a template shows it."""
        return super().each_context(request) | {
            "menu": SimpleLazyObject(lambda: navigation.menu(self, request)),
        }
