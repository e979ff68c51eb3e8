"""Limits of console pages: a time-out for statements, and error pages for refusals."""

from collections.abc import Callable
from typing import Any

from django.db import OperationalError, connection
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy
from psycopg.errors import QueryCanceled

from console import login
from console.lockouts import LockedOutError
from core import uploads
from core.passwords import HashingBusyError
from core.postgres.sessions import limit_statements

CONSOLE_PREFIX = "/admin/"
# Statements of the API may take 30 s. A console page gets 5 s, so that it does not hold a web thread.
STATEMENT_SECONDS = 5


class ConsolePageLimits:
    """The innermost middleware, around the views of the console."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        path = request.path_info
        if not path.startswith(CONSOLE_PREFIX):
            return self.get_response(request)
        if path in uploads.UPLOAD_PERMISSIONS:  # to store a file of 64 MB takes longer
            return self.get_response(request)
        with limit_statements(connection, STATEMENT_SECONDS):
            response = self.get_response(request)
        login.remember_device(request, response)
        return response

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if not request.path_info.startswith(CONSOLE_PREFIX):
            return None
        return refusal(request, error)


def refusal(request: HttpRequest, error: Exception) -> HttpResponse | None:
    """The page for an error that is no fault, or None."""
    if isinstance(error, LockedOutError):
        return _error_page(request, 429, error.retry_after, LOCKED_OUT)
    if isinstance(error, HashingBusyError):
        return _error_page(request, 503, 2, HASHING_BUSY)
    if isinstance(error, OperationalError) and isinstance(error.__cause__, QueryCanceled):
        return _error_page(request, 503, 60, PAGE_TOO_SLOW)
    return None


LOCKED_OUT = gettext_lazy(
    "Too many failed logins. Wait, or ask a colleague with the permission to lift lockouts."
)
HASHING_BUSY = gettext_lazy("Somebody else is logging in. Try again in a moment.")
PAGE_TOO_SLOW = gettext_lazy("Reading this page from the database takes too long. Use narrower filters.")


def _error_page(request: HttpRequest, status: int, retry_after: int, message: Promise) -> HttpResponse:
    context: dict[str, Any] = {
        "title": gettext_lazy("Not now"),
        "message": message,
        "minutes": -(-retry_after // 60),
    }
    response = render(request, "admin/refused.html", context, status=status)
    response.headers["Retry-After"] = str(retry_after)
    return response
