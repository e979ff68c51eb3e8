"""Which sessions may use the console, on top of what django-allauth checks, and the question "Is it you?".

A session is complete with a second step, if REQUIRE_TWO_FACTOR asks for one. It ends SESSION_IDLE_MINUTES
after its last request. Some acts need a proof of the last ten minutes (`audit_trail.confirmation`).
"""

import logging
import secrets
import struct
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

from allauth.account.adapter import get_adapter
from allauth.account.authentication import get_authentication_records
from allauth.core.exceptions import ReauthenticationRequired
from allauth.mfa.models import Authenticator
from allauth.mfa.utils import is_mfa_enabled
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib.auth import logout
from django.core.cache import cache
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import resolve, reverse
from django.utils.http import urlencode
from django.utils.translation import gettext_lazy as _

from console.models import SignInLimit
from core import clock, request_context
from core.console import sites
from core.console.sites import CONSOLE, PREFIXES

log = logging.getLogger("console")
PERIOD = timedelta(minutes=10)
# A request within a minute after another one writes nothing.
TOUCH_PERIOD = timedelta(minutes=1)
# In a session: when its user last proved who they are, whether by a second step, and forms that wait.
PROVEN_AT, HAS_SECOND_STEP, WAITING_FORMS = "proven_at", "has_second_step", "waiting_forms"
APP_OR_PASSKEY = (Authenticator.Type.TOTP, Authenticator.Type.WEBAUTHN)
# Pages of a session that is not complete.
OPEN_PAGES = {
    "account_logout", "mfa_activate_totp", "mfa_add_webauthn", "account_reauthenticate", "language", "jsi18n",
}  # fmt: skip
NOT_STAFF = _("Your account does not include the console. Log out to use another one.")
NO_PASSKEY = _("The passkey was not accepted. Try again.")
PASSKEY_PAGES = {"mfa_authenticate", "mfa_add_webauthn", "mfa_reauthenticate_webauthn"}
# What parsers raise for an answer that no browser gives.
MALFORMED = (ValueError, TypeError, LookupError, AttributeError, RecursionError, struct.error)


class SignInRules:
    """Middleware around the pages of the console and of shops, inside of allauth's."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if not request.path_info.startswith(PREFIXES):
            return self.get_response(request)
        key = request.COOKIES.get(settings.SESSION_COOKIE_NAME)
        if request.user.is_authenticated:
            if not touch(key):
                logout(request)
            request_context.set_needs_confirmation(lambda: not is_fresh(request))
        response = self.get_response(request)
        # After a new password, or with a new SECRET_KEY, the session has another key and stays in the list.
        if request.user.is_authenticated and (now := request.session.session_key) != key:
            known = UserSession.objects.filter(session_key=key, user=request.user)
            is_listed = UserSession.objects.filter(session_key=now).exists()
            if not is_listed and not known.update(session_key=now):
                UserSession.objects.create_from_request(request)
        return response

    def process_view(self, request: HttpRequest, *view: Any) -> HttpResponse | None:
        match = request.resolver_match
        if match is None or not request.path_info.startswith(PREFIXES):
            return None
        if not request.user.is_authenticated or match.url_name in OPEN_PAGES:
            return None
        is_console = request.path_info.startswith(CONSOLE)
        if is_console and not getattr(request.user, "is_staff", False):
            return sites.refusal(request, _("Not allowed"), NOT_STAFF, status=403)
        if is_complete(request):
            return None
        if not is_mfa_enabled(request.user, APP_OR_PASSKEY):
            return HttpResponseRedirect(reverse("mfa_activate_totp"))
        # Somebody else may have set up the second step meanwhile.
        logout(request)
        return HttpResponseRedirect(reverse("account_login"))

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        if isinstance(error, ReauthenticationRequired) and request.user.is_authenticated:
            return ask(request)
        match = request.resolver_match
        if isinstance(error, MALFORMED) and match is not None and match.url_name in PASSKEY_PAGES:
            log.warning("A passkey was refused: %s", type(error).__name__)
            return sites.refusal(request, _("Not allowed"), NO_PASSKEY, status=400)
        return None


def begin(request: HttpRequest, user: Any) -> None:
    """Note a new session, and forget what has ended."""
    proven_at = getattr(request, "proven_at", None)  # the company says when its user proved it
    request.session[PROVEN_AT] = clock.now().timestamp() if proven_at is None else proven_at
    methods = {record["method"] for record in get_authentication_records(request, user)}
    if methods & {"mfa", "socialaccount"}:
        request.session[HAS_SECOND_STEP] = True
    UserSession.objects.create_from_request(request, user=user, session=request.session)
    type(request.session).clear_expired()
    SignInLimit._default_manager.filter(expires__lt=clock.now()).delete()


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
    """Whether this session may use the console, as far as the second step decides it."""
    return not settings.REQUIRE_TWO_FACTOR or HAS_SECOND_STEP in request.session


def is_fresh(request: HttpRequest) -> bool:
    """Whether the user of this session proved who they are within ten minutes."""
    records = get_authentication_records(request, request.user)
    proofs = [record["at"] for record in records if record["method"] != "socialaccount"]
    last = max(request.session.get(PROVEN_AT, 0), *proofs, 0)
    return bool(clock.now().timestamp() - last < PERIOD.total_seconds())


def ask(request: HttpRequest) -> HttpResponse:
    """Lead to the question, and from there back to this page, or on with the form that was sent.

    A form waits in the session under a random name, which only the address of this question has. So an act
    that its sender gave up does not run after another question.
    """
    methods = get_adapter().get_reauthentication_methods(request.user)
    if not methods:
        raise PermissionDenied
    onward = request.get_full_path()
    if request.method == "POST" and not request.FILES:
        name, now = secrets.token_urlsafe(16), clock.now().timestamp()
        earlier = request.session.get(WAITING_FORMS, {}).items()
        waiting = {each: form for each, form in earlier if now - form["at"] < PERIOD.total_seconds()}
        form = {"path": onward, "fields": request.POST.urlencode(), "at": now}
        request.session[WAITING_FORMS] = {**waiting, name: form}
        onward = reverse("go_on", args=[name])
    return HttpResponseRedirect(f"{methods[0]['url']}?{urlencode({'next': onward})}")


def go_on_page(request: HttpRequest, name: str) -> Any:
    """Send the form that waited, after the answer to the question. A corrected form comes here too."""
    waiting = request.session.get(WAITING_FORMS, {}).get(name)
    if waiting is None or not request.user.is_authenticated:
        raise Http404
    if request.method != "POST":
        is_old = clock.now().timestamp() - waiting["at"] >= PERIOD.total_seconds()
        if waiting["fields"] is None or is_old:
            return HttpResponseRedirect(waiting["path"])
        if not is_fresh(request):
            return ask(request)
        # Of two requests at once, one sends the form.
        if not cache.add(f"console.form:{name}", "", PERIOD.total_seconds()):
            return HttpResponseRedirect(waiting["path"])
        request.method, request.POST = "POST", QueryDict(waiting["fields"])
    request.session[WAITING_FORMS][name]["fields"] = None
    request.session.modified = True
    path, _mark, query = waiting["path"].partition("?")
    request.GET = QueryDict(query)
    request.path = request.path_info = path
    request.META["QUERY_STRING"] = query
    found = request.resolver_match = resolve(path)
    return found.func(request, *found.args, **found.kwargs)


def end_sessions(user: Any, *, but: str | None = None, only: str | None = None) -> int:
    """End the sessions of a person, and return how many there were.

    but: the key of a session that stays. only: the id of the row of the one to end.
    """
    found = UserSession.objects.filter(user=user).exclude(session_key=but or "")
    if only is not None:  # longer numbers are no ids
        found = found.filter(pk=only) if only.isdecimal() and len(only) < 19 else found.none()
    rows = list(found)
    for row in rows:
        row.end()
    return len(rows)
