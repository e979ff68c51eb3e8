"""The sites of people who log in: the console of staff, and the pages of a merchant's people."""

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

CONSOLE, SHOP = "/admin/", "/shop/"
PREFIXES = (CONSOLE, SHOP)


def site_of(request: HttpRequest) -> Any:
    """The site whose page this is. The middleware of another site than the console sets it."""
    return getattr(request, "admin_site", admin.site)
