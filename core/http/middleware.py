"""Middleware of every request: request id, security headers, one JSON access line."""

import re
import time
from collections.abc import Callable
from typing import Any

import orjson
from django.conf import settings
from django.contrib.auth.middleware import AuthenticationMiddleware
from django.contrib.messages.middleware import MessageMiddleware
from django.contrib.sessions.middleware import SessionMiddleware
from django.http import HttpRequest, HttpResponse
from django.middleware.clickjacking import XFrameOptionsMiddleware
from django.middleware.csrf import CsrfViewMiddleware
from django.middleware.locale import LocaleMiddleware
from django.utils import translation

from core import errors, request_context
from core.console import personal_data
from core.http import client_addresses, received, responses, uploads
from core.http.uploads import UploadKind
from core.observing import access_log, measurements, security_log, telemetry

_SESSION = re.compile(r"[a-z0-9]+", re.ASCII)
_DENIED_STATUSES = {401, 403, 429}
_SITES = ("/admin", "/shop")  # pages of people who log in
_BROWSER_PATHS = (*_SITES, "/sandbox/bank", "/docs", "/guide", "/static")
# Workers call the API of the sandbox bank, which has no pages.
_BANK_API = "/sandbox/bank/v1/"
# Admin pages have no inline scripts; some elements have inline styles.
CONSOLE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
# With `no-referrer` browsers send the origin of a form as `null`, and Django refuses the form.
REFERRER_POLICY = {"Referrer-Policy": "same-origin"}
CONSOLE_HEADERS = {**REFERRER_POLICY, "Content-Security-Policy": CONSOLE_POLICY}
API_HEADERS = {
    **REFERRER_POLICY,
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'none'; frame-ancestors 'none'",
}
YEAR_SECONDS = 365 * 24 * 3600
Handler = Callable[[HttpRequest], HttpResponse]
LISTENERS: list[Callable[[HttpRequest, HttpResponse, float], None]] = []
"""Who hears of requests of merchants, with their response and seconds: `request_log`, above `core`."""


class AccessMiddleware:
    """The outermost middleware: sets the request id, limits the body, adds headers and logs one line."""

    def __init__(self, get_response: Handler) -> None:
        self.get_response = get_response
        self.access_log = access_log.of_this_process()

    def __call__(self, request: HttpRequest) -> HttpResponse:
        started = time.perf_counter()
        if not hasattr(request, "request_id"):  # `config.asgi` sets it, Django's client of tests does not
            given = request.META.get("HTTP_X_REQUEST_ID", "")
            request.request_id = request_context.request_id_for(given)  # type: ignore[attr-defined]
        request_context.begin(request_id=request_id_of(request), address=client_addresses.address_of(request))

        def respond(request: HttpRequest) -> HttpResponse:
            return _body_error(request) or self.get_response(request)

        response = telemetry.answer(request, respond) if telemetry.is_on() else respond(request)
        _set_security_headers(request, response)
        if response.status_code in _DENIED_STATUSES:
            code = getattr(response, "error_code", "")
            security_log.record_denied_request(status=response.status_code, code=code)
        seconds = time.perf_counter() - started
        measurements.add_request(request, response.status_code, seconds)
        if self.access_log is not None:
            self.access_log.add(_access_line(request, response, seconds))
        if hasattr(request, "merchant_id"):  # it had a valid key
            for listener in LISTENERS:
                listener(request, response, seconds)
        return response


def request_id_of(request: Any) -> str:
    return getattr(request, "request_id", "")


def _body_error(request: HttpRequest) -> HttpResponse | None:
    """The error for a body that is too large or compressed, or None."""
    # The claim page says itself that a picture is too large.
    if uploads.is_too_large(request.META) and (kind := uploads.kind_of(request.META)) is not UploadKind.CLAIM:
        detail = uploads.PICTURE_TOO_LARGE if kind is UploadKind.SLIP else None
        return responses.to_django(responses.error_response(errors.RequestTooLarge(detail=detail)))
    encoding = request.META.get("HTTP_CONTENT_ENCODING", "").strip().lower()
    if encoding not in ("", "identity") and (request.META.get("CONTENT_LENGTH") or "0") != "0":
        shown = received.describe(encoding, is_shown=True)
        return responses.to_django(responses.error_response(errors.UnsupportedMediaType(received=shown)))
    return None


def _set_security_headers(request: HttpRequest, response: HttpResponse) -> None:
    response.headers["X-Request-Id"] = request_id_of(request)
    response.headers["X-Content-Type-Options"] = "nosniff"
    if settings.SESSION_COOKIE_SECURE:
        response.headers["Strict-Transport-Security"] = f"max-age={YEAR_SECONDS}"
    if not is_for_browsers(request.path_info):
        defaults = API_HEADERS
    else:
        defaults = CONSOLE_HEADERS if request.path_info.startswith(_SITES) else REFERRER_POLICY
    for name, value in defaults.items():
        response.headers.setdefault(name, value)


def _access_line(request: HttpRequest, response: HttpResponse, seconds: float) -> str:
    """The access line. It has the route and not the path, which may contain personal data."""
    match, context = request.resolver_match, request_context.current()
    return orjson.dumps(
        {
            "at": time.time(),
            "log": "access",
            "request_id": request_id_of(request),
            "method": request.method,
            "route": match.route if match else None,
            "status": response.status_code,
            "ms": round(seconds * 1000, 2),
            "merchant": getattr(request, "merchant_id", None),
            "actor": context.actor or None,
            "address": context.address or None,
        }
    ).decode()


def is_for_browsers(path: str) -> bool:
    """Whether the page at this path has sessions, forms or static files."""
    return path.startswith(_BROWSER_PATHS) and not path.startswith(_BANK_API)


class _BrowserOnly:
    """Mixin for Django's browser middleware. API requests skip it, which saves them 40 µs."""

    def __call__(self, request: HttpRequest) -> Any:
        if is_for_browsers(request.path_info):
            return super().__call__(request)  # type: ignore[misc]
        return self.get_response(request)  # type: ignore[attr-defined]


class BrowserSessions(_BrowserOnly, SessionMiddleware):
    def process_request(self, request: HttpRequest) -> None:
        # PostgreSQL refuses a query for a key with U+0000.
        if not _SESSION.fullmatch(request.COOKIES.get(settings.SESSION_COOKIE_NAME, "")):
            request.COOKIES.pop(settings.SESSION_COOKIE_NAME, None)
        super().process_request(request)


class BrowserLanguage(_BrowserOnly, LocaleMiddleware):
    """The language of staff: by a cookie that they chose, else by their browser. The API is in English."""

    def process_response(self, request: HttpRequest, response: Any) -> Any:
        shown = super().process_response(request, response)
        translation.deactivate()  # the next request of this thread may be one of the API
        return shown


class BrowserUsers(_BrowserOnly, AuthenticationMiddleware):
    def process_request(self, request: HttpRequest) -> None:
        super().process_request(request)
        # Admin pages load the user in any case; other browser pages need no query.
        if request.path_info.startswith(_SITES) and request.user.is_authenticated:
            request_context.set_actor(
                request_context.actor_of(request.user),
                session=request_context.session_digest(request.session.session_key),
                hides_personal_data=not request.user.has_perm(personal_data.PERMISSION),
            )


class BrowserMessages(_BrowserOnly, MessageMiddleware):
    pass


class BrowserFraming(_BrowserOnly, XFrameOptionsMiddleware):
    pass


class BrowserCsrf(_BrowserOnly, CsrfViewMiddleware):
    """Checks forms only: the API has no cookies, so its requests cannot be forged."""

    def process_view(self, request: HttpRequest, *args: Any) -> Any:
        if is_for_browsers(request.path_info):
            return super().process_view(request, *args)
        return None
