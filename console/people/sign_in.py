"""Which sessions may use the console, on top of what django-allauth checks.

A session is complete with a second step, if REQUIRE_TWO_FACTOR asks for one. It ends SESSION_IDLE_MINUTES
after its last request. Some acts need a proof of the last ten minutes (`audit_trail.confirmation`).
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from allauth.account.authentication import get_authentication_records
from allauth.mfa.models import Authenticator
from allauth.mfa.utils import is_mfa_enabled
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.auth import logout
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.translation import gettext_lazy as _

from console import page_limits
from console.login_log import SIGNED_IN_AT
from core import admin_refusals, clock, request_context

PERIOD = timedelta(minutes=10)
# A request within a minute after another one writes nothing.
TOUCH_PERIOD = timedelta(minutes=1)
APP_OR_PASSKEY = (Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN)
# Pages of a session that is not complete.
OPEN_PAGES = {
    "account_logout",
    "mfa_activate_totp",
    "mfa_add_webauthn",
    "account_reauthenticate",
    "language",
    "jsi18n",
}
NOT_STAFF = _("Your account does not include the console. Log out to use another one.")


class SignInRules:
    """Middleware around the pages of the console, inside of allauth's."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not request.path_info.startswith(page_limits.CONSOLE_PREFIX):
            return self.get_response(request)
        key = request.COOKIES.get(settings.SESSION_COOKIE_NAME)
        if request.user.is_authenticated:
            if not touch(key):
                logout(request)
            request_context.set_needs_confirmation(lambda: not is_fresh(request))
        response = self.get_response(request)
        # After a new password, or with a new SECRET_KEY, the session has another key and stays in the list.
        if request.user.is_authenticated and request.session.session_key != key:
            known = UserSession.objects.filter(session_key=key)
            if not known.update(session_key=request.session.session_key):
                UserSession.objects.create_from_request(request)
        return response

    def process_view(self, request: HttpRequest, *view: Any) -> HttpResponse | None:
        match = request.resolver_match
        if match is None or not request.path_info.startswith(page_limits.CONSOLE_PREFIX):
            return None
        if not request.user.is_authenticated or match.url_name in OPEN_PAGES:
            return None
        if not getattr(request.user, "is_staff", False):
            return admin_refusals.page(request, _("Not allowed"), NOT_STAFF, status=403)
        return None if is_complete(request) else HttpResponseRedirect(reverse("mfa_activate_totp"))


def touch(session_key: str | None) -> bool:
    """Note a request in the row of its session. False if the session has ended."""
    now = clock.now()
    row = UserSession.objects.filter(session_key=session_key).first()
    if row is None or is_idle(row, now):
        return False
    if row.last_seen_at <= now - TOUCH_PERIOD:
        UserSession.objects.filter(pk=row.pk).update(last_seen_at=now)
    return True


def is_idle(row: UserSession, now: datetime) -> bool:
    is_over: bool = row.last_seen_at <= now - timedelta(minutes=settings.SESSION_IDLE_MINUTES)
    return is_over


def is_complete(request: HttpRequest) -> bool:
    """Whether the session of this request may use the console, as far as the second step decides it."""
    if not settings.REQUIRE_TWO_FACTOR:
        return True
    methods = {record["method"] for record in get_authentication_records(request, request.user)}
    return bool(methods & {"mfa", "socialaccount"}) or is_mfa_enabled(request.user, APP_OR_PASSKEY)


def is_fresh(request: HttpRequest) -> bool:
    """Whether the user of this session proved who they are within ten minutes."""
    records = get_authentication_records(request, request.user)
    last = max(request.session.get(SIGNED_IN_AT, 0), *(record["at"] for record in records), 0)
    return bool(clock.now().timestamp() - last < PERIOD.total_seconds())


def end_sessions(user: Any, *, but: str | None = None, only: str | None = None) -> int:
    """End the sessions of a person, and return how many there were.

    but: the key of a session that stays. only: the id of the row of the one to end.
    """
    found = UserSession.objects.filter(user=user).exclude(session_key=but or "")
    if only is not None:
        found = found.filter(pk=only) if only.isdecimal() else found.none()
    rows = list(found)
    for row in rows:
        row.end()
    return len(rows)
