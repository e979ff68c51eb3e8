"""The pages on which staff look after their own login: django-allauth's, with a record of each change."""

from collections.abc import Callable
from functools import wraps
from typing import Any

from allauth.account.decorators import reauthentication_required
from allauth.mfa.models import Authenticator
from allauth.mfa.totp.views import ActivateTOTPView
from allauth.mfa.utils import is_mfa_enabled
from allauth.socialaccount.models import SocialAccount
from allauth.usersessions.models import UserSession
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.contrib.auth.models import User
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.decorators import method_decorator
from django.utils.translation import gettext as _, gettext_lazy, ngettext
from django.views.decorators.cache import never_cache
from django.views.generic.edit import FormView

from audit_trail import recording
from audit_trail.acts import Act
from audit_trail.recording import recorded
from console.people import sign_in
from console.people.login_log import record_change, subject_of
from core import clock
from core.console import sites
from core.observing import security_log
from core.observing.security_log import SecurityEvent

Type = Authenticator.Type
View = Callable[..., Any]
ADDED = {Type.TOTP: Act.SECOND_FACTOR_ADDED, Type.WEBAUTHN: Act.PASSKEY_ADDED}
REMOVED = {Type.TOTP: Act.SECOND_FACTOR_REMOVED, Type.WEBAUTHN: Act.PASSKEY_REMOVED}
NAMES = {Type.TOTP: "app", Type.WEBAUTHN: "passkey"}
# Each browser also names those before it, which it imitates.
BROWSERS = (("Edg", "Edge"), ("OPR", "Opera"), ("Firefox", "Firefox"), ("FxiOS", "Firefox"),
            ("CriOS", "Chrome"), ("Chrome", "Chrome"), ("Safari", "Safari"))  # fmt: skip
SYSTEMS = (("Android", "Android"), ("iPhone", "iPhone"), ("iPad", "iPad"), ("Windows", "Windows"),
           ("Macintosh", "macOS"), ("CrOS", "ChromeOS"), ("Linux", "Linux"))  # fmt: skip

NEEDED = gettext_lazy("You need a second step. Set up another app or a passkey first.")
# Of allauth's pages, by the names of their addresses.
TITLES = {
    "account_login": gettext_lazy("Log in"),
    "openid_connect_login": gettext_lazy("Log in"),
    "openid_connect_callback": gettext_lazy("Log in"),
    "socialaccount_login_cancelled": gettext_lazy("Log in"),
    "account_logout": gettext_lazy("Log out"),
    "mfa_authenticate": gettext_lazy("Second step"),
    "mfa_activate_totp": gettext_lazy("Set up an authenticator app"),
    "mfa_deactivate_totp": gettext_lazy("Remove the app"),
    "mfa_view_recovery_codes": gettext_lazy("Your recovery codes"),
    "mfa_generate_recovery_codes": gettext_lazy("New recovery codes"),
    "mfa_add_webauthn": gettext_lazy("Add a passkey"),
    "mfa_remove_webauthn": gettext_lazy("Remove a passkey"),
    "account_reauthenticate": gettext_lazy("Is it you?"),
    "mfa_reauthenticate": gettext_lazy("Is it you?"),
    "mfa_reauthenticate_webauthn": gettext_lazy("Is it you?"),
}


def context(request: HttpRequest) -> dict[str, Any]:
    """What the templates of the console need on allauth's pages, for the template engine."""
    match = request.resolver_match
    if match is None or match.url_name not in TITLES:
        return {}
    return {**sites.site_of(request).each_context(request), "title": TITLES[match.url_name]}


class StepNeededError(Exception):
    """The last second step would go, and each session needs one."""


class AppView(ActivateTOTPView):
    """Set up an app, also in place of another one."""

    @method_decorator(reauthentication_required(app="allauth.mfa"))
    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        # Not allauth's, which leads people with an app to its removal.
        return FormView.dispatch(self, request, *args, **kwargs)

    def get_context_data(self, **kwargs: Any) -> dict[str, Any]:
        is_replacement = is_mfa_enabled(self.request.user, [Type.TOTP])
        return {**super().get_context_data(**kwargs), "is_replacement": is_replacement}

    def form_valid(self, form: Any) -> HttpResponse:
        old = (Type.TOTP, Type.RECOVERY_CODES)
        Authenticator.objects.filter(user=self.request.user, type__in=old).delete()
        answer: HttpResponse = super().form_valid(form)
        return answer


def with_record(view: View) -> View:
    """A page of allauth that changes a second factor, in one transaction with the record of the change."""

    @never_cache
    @login_required
    @wraps(view)
    def page(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        if request.method != "POST":
            return view(request, *args, **kwargs)
        try:
            return change(request, *args, **kwargs)
        except StepNeededError:
            return sites.refusal(request, _("Not allowed"), NEEDED, status=400)

    def change(request: HttpRequest, *args: Any, **kwargs: Any) -> Any:
        with transaction.atomic():
            # Two changes of one person take turns.
            person = User.objects.select_for_update().get(username=request.user.get_username())
            before = _factors(person)
            # Of two first set-ups at once, the second one may be that of a guesser with the password.
            if _has_step(before) and sign_in.HAS_SECOND_STEP not in request.session:
                return HttpResponseRedirect(reverse("account_login"))
            response = view(request, *args, **kwargs)
            after = _factors(person)
            if settings.REQUIRE_TWO_FACTOR and _has_step(before) and not _has_step(after):
                raise StepNeededError
            _record(request, person, before, after)
        return response

    return page


@never_cache
@login_required
def account_page(request: HttpRequest) -> HttpResponse:
    """Show how this person signs in, and where."""
    now, factors = clock.now(), Authenticator.objects.filter(user=request.user).order_by("created_at")
    codes = factors.filter(type=Type.RECOVERY_CODES).first()
    sessions = UserSession.objects.filter(user=request.user).order_by("-last_seen_at")
    return sites.page(
        request,
        "admin/people/account.html",
        _("Sign-in and sessions"),
        factor=factors.filter(type=Type.TOTP).first(),
        passkeys=factors.filter(type=Type.WEBAUTHN),
        unused_codes=None if codes is None else len(codes.wrap().get_unused_codes()),
        has_company=bool(settings.SOCIALACCOUNT_PROVIDERS),
        company=SocialAccount.objects.filter(user=request.user).first(),
        sessions=[
            (row, browser_name(row.user_agent), row.session_key == request.session.session_key)
            for row in sessions
            if row.exists() and not sign_in.is_idle(row, now)
        ],
        idle_minutes=settings.SESSION_IDLE_MINUTES,
    )


@login_required
def end_sessions_page(request: HttpRequest) -> HttpResponse:
    """End one other session of this person, or all others if the form names none."""
    user = User.objects.get(username=request.user.get_username())
    if request.method == "POST":
        with recorded(Act.SESSIONS_ENDED, user) as recording_:
            own, only = request.session.session_key, request.POST.get("session")
            ended = sign_in.end_sessions(user, but=own, only=only)
            recording_.details["sessions"] = ended
        security_log.record(SecurityEvent.SESSIONS_ENDED, subject=subject_of(user))
        text = ngettext("%(count)d session ended.", "%(count)d sessions ended.", ended)
        messages.success(request, text % {"count": ended})
    return HttpResponseRedirect(reverse("mfa_index"))


def browser_name(user_agent: str) -> str:
    """Such as `Firefox, Windows`; empty if it is unknown."""
    tables = (BROWSERS, SYSTEMS)
    found = [next((name for part, name in table if part in user_agent), "") for table in tables]
    return ", ".join(filter(None, found))


def _factors(user: Any) -> dict[int, Authenticator]:
    return {row.pk: row for row in Authenticator.objects.filter(user=user)}


def _has_step(factors: dict[int, Authenticator]) -> bool:
    return any(row.type in ADDED for row in factors.values())


def _record(request: HttpRequest, user: User, before: dict[int, Any], after: dict[int, Any]) -> None:
    added = [after[key] for key in after.keys() - before.keys()]
    removed = [before[key] for key in before.keys() - after.keys()]
    acts = [(ADDED[row.type], f"+{NAMES[row.type]}", row) for row in added if row.type in ADDED]
    acts += [(REMOVED[row.type], f"-{NAMES[row.type]}", row) for row in removed if row.type in REMOVED]
    if not acts and added:
        acts = [(Act.RECOVERY_CODES_RENEWED, "+recovery_codes", added[0])]
    for act, change, row in acts:
        details = {"passkey": str(row)} if row.type == Type.WEBAUTHN else {}
        recording.write(act, user, after=details)
        record_change(SecurityEvent.SECOND_FACTOR_CHANGED, user, change)
        if act in ADDED.values():  # other sessions may be those of a guesser
            request.session[sign_in.HAS_SECOND_STEP] = True
            sign_in.end_sessions(user, but=request.session.session_key)
    if not _has_step(after):
        request.session.pop(sign_in.HAS_SECOND_STEP, None)
