"""The admin site of the console: Django's, with navigation by task."""

from collections.abc import Sequence
from functools import partial
from typing import Any

from django.conf import settings
from django.contrib import admin
from django.db import transaction
from django.http import HttpRequest
from django.template.response import TemplateResponse
from django.urls import path, reverse
from django.utils.functional import SimpleLazyObject
from django.utils.translation import gettext_lazy as _
from django.views.decorators.cache import never_cache
from django.views.i18n import JavaScriptCatalog, set_language

from audit_trail import recording
from audit_trail.acts import Act
from console.exports import monthly_page, page as exports_page
from console.home import page
from console.lists import navigation, search
from console.people import invitations, lockouts, sign_in
from console.settlements import on_the_way_page
from merchants import modes
from transfers import safe_mode


class ScriptTexts(JavaScriptCatalog):
    """The texts of Django's scripts, with those in Thai that Django does not have."""

    packages = ["django.contrib.admin"]

    def get_paths(self, packages: list[str]) -> list[str]:
        return [*super().get_paths(packages), *map(str, settings.LOCALE_PATHS)]


class SiteOfPeople(admin.AdminSite):
    """What the console and the pages of shops share."""

    site_header = site_title = "Thai QR Payments"
    index_title = _("Home")
    enable_nav_sidebar = False  # templates/admin/base_site.html has its own
    searched: Sequence[str] = ()
    """Labels of the models whose lists the search of the header reads."""
    has_modes = False
    """Whether an address may choose live or test."""

    def narrowed_mode(self, request: HttpRequest) -> str | None:
        """The mode of the rows that lists show, or None for all that there are."""
        return None

    def i18n_javascript(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        return ScriptTexts.as_view()(request)

    def get_urls(self) -> list[Any]:
        found, typed = self.admin_view(search.view), self.admin_view(partial(search.view, is_typed=True))
        urls = [path("search/", found, name="search"), path("search/typed/", typed, name="search_typed")]
        return [*urls, *super().get_urls()]

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        may_search = SimpleLazyObject(lambda: bool(search.lists(self, request)))
        return super().each_context(request) | {"may_search": may_search}

    @transaction.atomic
    def password_change(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> Any:
        """Django's page, in one transaction with its record."""
        user: Any = request.user
        before = user.password
        response = super().password_change(request, extra_context)
        if user.password != before:
            recording.write(Act.PASSWORD_CHANGED, user)
            # Django makes them useless; without their rows, the list of sessions shows it.
            sign_in.end_sessions(user, but=request.session.session_key)
        return response


class ConsoleSite(SiteOfPeople):
    site_url = "/docs"
    searched = search.SEARCHED
    has_modes = True

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        return super().index(request, page.context(request) | (extra_context or {}))

    def has_permission(self, request: HttpRequest) -> bool:
        """Whether this person may use the console at all. Django asks before each page of it."""
        return super().has_permission(request) and sign_in.is_complete(request)

    def narrowed_mode(self, request: HttpRequest) -> str | None:
        return modes.narrowed(request)

    def follow_mode(self, request: HttpRequest, mode: str) -> None:
        modes.follow(request, mode)

    def get_urls(self) -> list[Any]:
        view = self.admin_view
        return [
            path("invitation/", never_cache(invitations.invitation_page), name="invitation"),
            path("lift-lockout/", view(lockouts.lift_page), name="lift_lockout"),
            path("exports/", view(exports_page.view), name="exports"),
            path("exports/<int:number>/", view(exports_page.download), name="export_download"),
            path("reports/monthly/", view(monthly_page.view), name="monthly_report"),
            path("on-the-way/", view(on_the_way_page.view), name="on_the_way"),
            path("language/", set_language, name="language"),
            *super().get_urls(),
        ]

    def each_context(self, request: HttpRequest) -> dict[str, Any]:
        """Add the menu, which is made only if a template shows it."""
        return super().each_context(request) | {
            "menu": SimpleLazyObject(lambda: navigation.menu(self, request)),
            "safe_mode": SimpleLazyObject(safe_mode.current),
            "mode": (mode := modes.chosen(request)),
            "other_mode_url": f"{_list_or_home(request)}?mode={modes.other(mode)}",
        }


def _list_or_home(request: HttpRequest) -> str:
    """Where the switch of the mode leads: a row is of one mode."""
    match = request.resolver_match
    return request.path if match is not None and not match.kwargs else reverse("admin:index")
