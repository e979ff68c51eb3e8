"""Limits of console pages: a time-out for statements. And the pages that say why something is refused."""

from collections.abc import Callable
from functools import cache

from django.contrib import admin
from django.core.exceptions import PermissionDenied
from django.db import OperationalError, connection
from django.http import Http404, HttpRequest, HttpResponse
from django.template import loader
from django.utils import translation
from django.utils.functional import Promise
from django.utils.translation import gettext_lazy as _
from django.views.csrf import csrf_failure as django_csrf_failure
from psycopg.errors import QueryCanceled

from console.people import login
from core.console import sites
from core.console.passwords import HashingBusyError
from core.console.sites import PREFIXES
from core.database.sessions import limit_statements
from core.http import api, uploads
from core.http.middleware import request_id_of

# Statements of the API may take 30 s. A console page gets 5 s, so that it does not hold a web thread.
STATEMENT_SECONDS = 5


class ConsolePageLimits:
    """The innermost middleware, around the views of the console."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        path = request.path_info
        # To store a file of 64 MB takes longer.
        if not path.startswith(PREFIXES) or path in uploads.UPLOAD_PERMISSIONS:
            return self.get_response(request)
        with limit_statements(connection, STATEMENT_SECONDS):
            response = self.get_response(request)
        login.remember_device(request, response)
        return response

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        return refusal(request, error) if request.path_info.startswith(PREFIXES) else None


def refusal(request: HttpRequest, error: Exception) -> HttpResponse | None:
    """The page for an error that is no fault, or None."""
    if isinstance(error, HashingBusyError):
        return later(request, 503, 2, HASHING_BUSY)
    if isinstance(error, OperationalError) and isinstance(error.__cause__, QueryCanceled):
        return later(request, 503, 60, PAGE_TOO_SLOW)
    if isinstance(error, PermissionDenied):
        return sites.refusal(request, _("Not allowed"), NOT_ALLOWED, status=403)
    if isinstance(error, Http404):
        return sites.refusal(request, _("Page not found"), NOT_FOUND, status=404)
    return None


LOCKED_OUT = _("Too many failed logins. Wait, or ask a colleague with the permission to lift lockouts.")
TOO_MANY_IN_A_MINUTE = _("Too many logins or answers within a minute. Try again in a minute.")
TOO_MANY_SEARCHES = _("Too many searches within a minute. Wait a few seconds, and search again.")
HASHING_BUSY = _("Somebody else is logging in. Try again in a moment.")
TOO_MANY_AT_ONCE = _("Too many colleagues open pages at the same time. Try again in a moment.")
PAGE_TOO_SLOW = _("Reading this page from the database takes too long. Use narrower filters.")
NOT_ALLOWED = _("Your role does not include this. Ask an admin of your team if you need it.")
NOT_FOUND = _("There is no such page or object. Search for its id, or choose a task in the menu.")
FORM_TOO_OLD = _("This form is from before your last login, so nothing was changed. Open the page again.")

SERVER_ERROR = _("Try again. If it happens again, give your administrator this number: %(request_id)s")


def later(request: HttpRequest, status: int, retry_after: int, message: Promise) -> HttpResponse:
    response = sites.refusal(request, _("Not now"), message, status=status, minutes=-(-retry_after // 60))
    response.headers["Retry-After"] = str(retry_after)
    return response


def too_many_requests(request: HttpRequest) -> HttpResponse:
    """The page for more requests of one party than allauth allows in a minute."""
    return later(request, 429, 60, TOO_MANY_IN_A_MINUTE)


def csrf_failure(request: HttpRequest, reason: str = "") -> HttpResponse:
    """The page for a form without a valid token, such as one from before a login in another tab."""
    if not request.path_info.startswith(PREFIXES):
        return django_csrf_failure(request, reason=reason)
    return sites.refusal(request, _("Not now"), FORM_TOO_OLD, status=403)


def server_error(request: HttpRequest) -> HttpResponse:
    """The page for an unhandled exception, or the API's answer for other paths. Both log it."""
    answer = api.server_error(request)
    if not request.path_info.startswith(PREFIXES):
        return answer
    message = SERVER_ERROR % {"request_id": request_id_of(request)}
    answer.headers["Content-Type"] = "text/html; charset=utf-8"
    answer.content = _plain_page(_("This did not work"), message)
    return answer


def overloaded_page(request: HttpRequest) -> bytes:
    """The page for a request that gets no thread, in the language of the reader."""
    return _overloaded_page(translation.get_language_from_request(request))


@cache
def _overloaded_page(language: str) -> bytes:
    """Made once for each language, because the event loop makes it."""
    with translation.override(language):
        return _plain_page(_("Not now"), TOO_MANY_AT_ONCE)


def _plain_page(title: str | Promise, message: str | Promise) -> bytes:
    """Without the menu and the user, because the database may be the cause."""
    site = {"site_title": admin.site.site_title, "site_header": admin.site.site_header}
    context = {**site, "title": title, "message": message, "is_plain": True}
    return loader.render_to_string("admin/refused.html", context).encode()
