"""The page that says why the console does not show or do what was asked, with a way back."""

from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.functional import Promise

from core.console.sites import site_of


def page(
    request: HttpRequest, title: str | Promise, message: str | Promise, *, status: int, minutes: int = 0
) -> HttpResponse:
    """minutes: after which somebody may try again. Below 2 the page does not name them."""
    context: dict[str, Any] = {
        **site_of(request).each_context(request),
        "title": title,
        "message": message,
        "minutes": minutes,
    }
    return render(request, "admin/refused.html", context, status=status)
