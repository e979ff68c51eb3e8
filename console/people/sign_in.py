"""The second step of a login, and the pages on which staff look after their own second factor.

A session is complete after both steps. Until then it reaches only the second step and the logout.
"""

import base64
from typing import Any

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme, urlencode
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext

from audit_trail import confirmation
from audit_trail.acts import Act
from audit_trail.recording import recorded
from console.login_log import subject_of
from console.models import SecondFactor
from console.people import passkeys, second_factors, staff_sessions
from console.people.second_factors import AlreadyEnrolled, Kind, WrongCode
from core import clock, security_log, vault
from core.security_log import SecurityEvent
from qrcodes import images

# In a session: when its second step was done.
COMPLETED_AT = "second_step_at"


class CodeForm(forms.Form):
    code = forms.CharField(
        label=gettext_lazy("Code"),
        max_length=64,
        widget=forms.TextInput(
            attrs={"autocomplete": "one-time-code", "autofocus": True, "spellcheck": "false"}
        ),
    )

    def refuse(self) -> None:
        message = _("The code is wrong, or it was used before. Wait for the next code of the app.")
        self.add_error("code", message)


class PasskeyForm(forms.Form):
    name = forms.CharField(
        label=gettext_lazy("Name"),
        max_length=60,
        help_text=gettext_lazy("Such as the name of your computer or security key."),
    )
    passkey = forms.CharField(max_length=passkeys.MAX_ANSWER, required=False, widget=forms.HiddenInput)


def is_complete(request: HttpRequest) -> bool:
    """Whether the session of this request may use the console, as far as the second step decides it."""
    if COMPLETED_AT in getattr(request, "session", {}):
        return True
    if settings.REQUIRE_TWO_FACTOR:
        return False
    # Each page asks several times.
    known: bool | None = getattr(request, "needs_second_step", None)
    if known is None:
        known = _is_enrolled(request)
        request.needs_second_step = known  # type: ignore[attr-defined]
    return not known


def is_waiting(request: HttpRequest) -> bool:
    """Whether a member of staff has given the password, and not yet the code."""
    return _is_staff(request) and not is_complete(request)


def to_second_step(request: HttpRequest) -> HttpResponse:
    """Lead to the page of the code, or to the one that sets up the app."""
    page = reverse("admin:sign_in_code" if _is_enrolled(request) else "admin:sign_in_app")
    return HttpResponseRedirect(f"{page}?{urlencode({'next': _next(request)})}")


def code_page(site: Any, request: HttpRequest) -> HttpResponse:
    """Ask for a code of the app or a recovery code."""
    if not _is_staff(request) or is_complete(request):
        return _onward(request)
    if not _is_enrolled(request):
        return to_second_step(request)
    user, answer = _user(request), request.POST.get("passkey")
    form = CodeForm(request.POST if request.POST and answer is None else None)
    try:
        if answer is not None:
            kind = second_factors.check(user, lambda: _by_passkey(request, user, answer), now=clock.now())
        elif form.is_valid():
            kind = second_factors.check_code(user, form.cleaned_data["code"], now=clock.now())
        else:
            return _code_page(site, request, form)
    except WrongCode:
        if answer is None:
            form.refuse()
        return _code_page(site, request, form, has_failed=answer is not None)
    _complete(request)
    if kind is Kind.RECOVERY_CODE:
        _warn_about_recovery_codes(request)
    return _onward(request)


def app_page(site: Any, request: HttpRequest) -> HttpResponse:
    """Set up an authenticator app: as the second step of a first login, or in place of another app."""
    if not _is_staff(request):
        return _onward(request)
    is_replacement = is_complete(request)
    if not is_replacement and _is_enrolled(request):
        return to_second_step(request)
    if is_replacement:
        # Before the page, because a code of the new app is too old after a question.
        confirmation.check(Act.SECOND_FACTOR_ADDED)
    form = CodeForm(request.POST or None)
    secret = _secret_of(request) or second_factors.new_secret()
    if form.is_valid():
        try:
            codes = _enrol(request, secret, form.cleaned_data["code"], is_replacement=is_replacement)
        except WrongCode:
            form.refuse()
        except AlreadyEnrolled:
            return to_second_step(request)
        else:
            _complete(request)
            return _codes_page(site, request, codes)
    user = _user(request)
    # Not by the cache of pictures: it would keep the secret in memory.
    picture = images.svg.__wrapped__(second_factors.address_for_app(user, secret))
    return _page(
        site,
        request,
        "sign_in_app",
        _("Set up an authenticator app"),
        form=form,
        picture=base64.b64encode(picture).decode(),
        # Not stored before the app has proven that it knows the secret.
        sealed_secret=vault.seal(secret, context=_context(request)),
        secret=" ".join(secret[start : start + 4] for start in range(0, len(secret), 4)),
        is_replacement=is_replacement,
    )


def account_page(site: Any, request: HttpRequest) -> HttpResponse:
    """Show how this person signs in."""
    user = _user(request)
    return _page(
        site,
        request,
        "account",
        _("Sign-in and sessions"),
        factor=SecondFactor.objects.filter(user=user).first(),
        unused_codes=second_factors.unused_recovery_codes(user),
        is_required=settings.REQUIRE_TWO_FACTOR,
        passkeys=passkeys.of(user),
        sessions=staff_sessions.shown(user, request.session.session_key, now=clock.now()),
        idle_minutes=settings.SESSION_IDLE_MINUTES,
    )


def end_sessions_page(site: Any, request: HttpRequest) -> HttpResponse:
    """End one other session of this person, or all others if the form names none."""
    user, current = _user(request), request.session.session_key
    if request.method == "POST":
        with recorded(Act.SESSIONS_ENDED, user) as recording:
            ended = staff_sessions.end(user, but=current, only=request.POST.get("session"))
            recording.details["sessions"] = ended
        security_log.record(SecurityEvent.SESSIONS_ENDED, subject=subject_of(user))
        text = ngettext("%(count)d session ended.", "%(count)d sessions ended.", ended)
        messages.success(request, text % {"count": ended})
    return HttpResponseRedirect(reverse("admin:account"))


def recovery_codes_page(site: Any, request: HttpRequest) -> HttpResponse:
    """Replace the recovery codes, and show the new ones once."""
    user = _user(request)
    if request.method != "POST" or not _is_enrolled(request):
        return HttpResponseRedirect(reverse("admin:account"))
    with recorded(Act.RECOVERY_CODES_RENEWED, user):
        codes = second_factors.renew_recovery_codes(user)
    _log_change(user, "+recovery_codes")
    return _codes_page(site, request, codes)


def removal_page(site: Any, request: HttpRequest) -> HttpResponse:
    """Remove one's own second factor, if the deployment does not require one."""
    user = _user(request)
    if request.method == "POST" and not settings.REQUIRE_TWO_FACTOR:
        with recorded(Act.SECOND_FACTOR_REMOVED, user):
            second_factors.remove(user)
        _log_change(user, "-app")
        messages.success(request, _("Your login has no second step now."))
    return HttpResponseRedirect(reverse("admin:account"))


def passkey_page(site: Any, request: HttpRequest) -> HttpResponse:
    """Add a passkey. An app comes first, because its recovery codes help when the passkey is lost."""
    if not _is_enrolled(request):
        return HttpResponseRedirect(reverse("admin:account"))
    confirmation.check(Act.PASSKEY_ADDED)
    user, has_failed = _user(request), False
    form = PasskeyForm(request.POST or None)
    if form.is_valid():
        given = form.cleaned_data
        try:
            with recorded(Act.PASSKEY_ADDED, user) as recording:
                made = passkeys.add(request, user, given["name"], given["passkey"], now=clock.now())
                recording.details["passkey"] = made.name
        except WrongCode:
            has_failed = True
        else:
            _log_change(user, "+passkey")
            return HttpResponseRedirect(reverse("admin:account"))
    options = passkeys.creation_options(request, user)
    title = _("Add a passkey")
    return _page(site, request, "passkey", title, form=form, options=options, has_failed=has_failed)


def passkey_removal_page(site: Any, request: HttpRequest) -> HttpResponse:
    """Remove one of one's own passkeys."""
    if request.method == "POST":
        user = _user(request)
        with recorded(Act.PASSKEY_REMOVED, user):
            passkeys.remove(user, request.POST.get("id", ""))
        _log_change(user, "-passkey")
    return HttpResponseRedirect(reverse("admin:account"))


def _code_page(site: Any, request: HttpRequest, form: CodeForm, *, has_failed: bool = False) -> HttpResponse:
    options = passkeys.request_options(request, request.user)
    context = {"form": form, "options": options, "has_failed": has_failed}
    return _page(site, request, "sign_in_code", _("Second step"), **context)


def _by_passkey(request: HttpRequest, user: User, answer: str) -> Kind | None:
    return Kind.PASSKEY if passkeys.accept(request, user, answer, now=clock.now()) else None


def _enrol(request: HttpRequest, secret: str, code: str, *, is_replacement: bool) -> list[str]:
    """Store the app, and end the other sessions: they may be those of a guesser."""
    user = _user(request)
    with recorded(Act.SECOND_FACTOR_ADDED, user):
        codes = second_factors.enrol(user, secret, code, is_replacement=is_replacement, now=clock.now())
        staff_sessions.end(user, but=request.session.session_key)
    _log_change(user, "+app")
    return codes


def _log_change(user: Any, change: str) -> None:
    security_log.record(SecurityEvent.SECOND_FACTOR_CHANGED, subject=subject_of(user), changes=[change])


def _secret_of(request: HttpRequest) -> str | None:
    """The new secret that the form brings back. Only this session can use it."""
    try:
        return vault.open_sealed(request.POST.get("sealed_secret", ""), context=_context(request))
    except vault.CannotOpen:
        return None


def _context(request: HttpRequest) -> str:
    return f"enrolment:{request.session.session_key}"


def _complete(request: HttpRequest) -> None:
    # A new key, so that a stolen key of the first step is worth nothing.
    request.session.cycle_key()
    request.session[COMPLETED_AT] = int(clock.now().timestamp())
    staff_sessions.confirm(request, now=clock.now())


def _warn_about_recovery_codes(request: HttpRequest) -> None:
    user = _user(request)
    left = second_factors.unused_recovery_codes(user)
    text = _("You used a recovery code. %(left)d are left. Set up your app again if you lost it.")
    messages.warning(request, text % {"left": left})


def _codes_page(site: Any, request: HttpRequest, codes: list[str]) -> HttpResponse:
    return _page(site, request, "recovery_codes", _("Your recovery codes"), codes=codes)


def _page(site: Any, request: HttpRequest, name: str, title: str, **context: Any) -> HttpResponse:
    shown = {**site.each_context(request), "title": title, "next": _next(request), **context}
    return TemplateResponse(request, f"admin/people/{name}.html", shown)


def _user(request: HttpRequest) -> User:
    return User.objects.get(username=request.user.get_username())


def _is_staff(request: HttpRequest) -> bool:
    return bool(request.user.is_active and request.user.is_staff)


def _is_enrolled(request: HttpRequest) -> bool:
    return second_factors.is_enrolled(request.user)


def _onward(request: HttpRequest) -> HttpResponse:
    return HttpResponseRedirect(_next(request))


def _next(request: HttpRequest) -> str:
    """The page to which the login leads: one of this site."""
    target = request.POST.get("next") or request.GET.get("next") or ""
    is_ours = url_has_allowed_host_and_scheme(target, {request.get_host()}, require_https=request.is_secure())
    return target if is_ours else reverse("admin:index")
