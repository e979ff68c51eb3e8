"""The sites of people who log in: the console of staff, and the pages of a merchant's people."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.utils.functional import Promise

CONSOLE, SHOP = "/admin/", "/shop/"
PREFIXES = (CONSOLE, SHOP)


def site_of(request: HttpRequest) -> Any:
    """The site whose page this is. The middleware of another site than the console sets it."""
    return getattr(request, "admin_site", admin.site)


def page(
    request: HttpRequest, template: str, title: str | Promise, *, status: int = 200, **context: Any
) -> TemplateResponse:
    """A page of the site of this request, with its menu."""
    shown = {**site_of(request).each_context(request), "title": title, **context}
    return TemplateResponse(request, template, shown, status=status)


def refusal(
    request: HttpRequest, title: str | Promise, message: str | Promise, *, status: int, minutes: int = 0
) -> HttpResponse:
    """The page that says why the console does not show or do what was asked, with a way back.

    minutes: after which somebody may try again. Below 2 the page does not name them.
    """
    shown = page(request, "admin/refused.html", title, status=status, message=message, minutes=minutes)
    return shown.render()
