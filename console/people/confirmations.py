"""The question "Is it you?" before acts that need a confirmation (`audit_trail.confirmation`).

The question is the answer to the form that asked for the act. It has the fields of the form, hidden, and
sends them again with the answer. So nothing is typed twice, except passwords.
"""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import Any

from django import forms
from django.contrib import admin
from django.contrib.auth import authenticate
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.template.response import TemplateResponse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from audit_trail.confirmation import DROPPED, SECRET_PREFIX, ConfirmationNeeded
from console import page_limits
from console.lockouts import LockedOutError
from console.people import passkeys, second_factors, staff_sessions
from console.people.second_factors import Kind, WrongCode
from core import clock, request_context
from core.passwords import HashingBusyError

PERIOD = timedelta(minutes=10)
ANSWER, PASSKEY_ANSWER = "confirmation", "confirmation_passkey"
# Set if the question was asked before a page was shown, which is then shown.
ONLY_ASKED = "confirmation_only"
NOT_REPEATED = {"csrfmiddlewaretoken", ANSWER, PASSKEY_ANSWER, ONLY_ASKED}


class AnswerForm(forms.Form):
    """Asks for a code of the app, or for the password of a person without an app.

    Beside it, a person with a passkey may use that.
    """

    def __init__(self, *, has_app: bool) -> None:
        super().__init__()
        self.has_app = has_app
        if has_app:
            label, kind = gettext_lazy("Code of your app, or a recovery code"), "one-time-code"
            widget: type[forms.Widget] = forms.TextInput
        else:
            label, kind, widget = gettext_lazy("Your password"), "current-password", forms.PasswordInput
        attributes = {"autocomplete": kind, "autofocus": True, "spellcheck": "false"}
        self.fields[ANSWER] = forms.CharField(label=label, max_length=4096, widget=widget(attributes))


class Confirmations:
    """Middleware around the pages of the console, after the one that finds the user."""

    def __init__(self, get_response: Callable[[HttpRequest], HttpResponse]) -> None:
        self.get_response = get_response

    def __call__(self, request: HttpRequest) -> HttpResponse:
        if _is_of_staff(request):
            request_context.set_needs_confirmation(not _is_fresh(request, clock.now()))
        return self.get_response(request)

    def process_view(self, request: HttpRequest, *view: Any) -> HttpResponse | None:
        """Check an answer, and go on with the act. The token of the form has been checked before."""
        if not _is_of_staff(request) or request.POST.keys().isdisjoint({ANSWER, PASSKEY_ANSWER}):
            return None
        by_passkey = PASSKEY_ANSWER in request.POST
        try:
            is_right = (_check_passkey if by_passkey else _check)(request)
        except (LockedOutError, HashingBusyError) as refusal:
            return page_limits.refusal(request, refusal)
        if not is_right:
            return _question(request, has_failed="passkey" if by_passkey else "code")
        staff_sessions.confirm(request, now=clock.now())
        if ONLY_ASKED in request.POST:
            return HttpResponseRedirect(request.get_full_path())
        return None

    def process_exception(self, request: HttpRequest, error: Exception) -> HttpResponse | None:
        return _question(request) if isinstance(error, ConfirmationNeeded) else None


def _is_of_staff(request: HttpRequest) -> bool:
    if not request.path_info.startswith(page_limits.CONSOLE_PREFIX):
        return False
    return request.user.is_authenticated and admin.site.has_permission(request)


def _is_fresh(request: HttpRequest, now: datetime) -> bool:
    at = request.session.get(staff_sessions.CONFIRMED_AT)
    return at is not None and now.timestamp() - at < PERIOD.total_seconds()


def _check(request: HttpRequest) -> bool:
    user: Any = request.user
    answer = request.POST[ANSWER]
    if not second_factors.is_enrolled(user):
        found = authenticate(request, username=user.get_username(), password=answer)
        return found is not None and found.pk == user.pk
    try:
        second_factors.check_code(user, answer, now=clock.now())
    except WrongCode:
        return False
    return True


def _check_passkey(request: HttpRequest) -> bool:
    user: Any = request.user
    answer, now = request.POST[PASSKEY_ANSWER], clock.now()

    def accept() -> Kind | None:
        return Kind.PASSKEY if passkeys.accept(request, user, answer, now=now) else None

    try:
        second_factors.check(user, accept, now=now)
    except WrongCode:
        return False
    return True


def _question(request: HttpRequest, *, has_failed: str = "") -> HttpResponse:
    """has_failed: the kind of the answer that was wrong."""
    form = AnswerForm(has_app=second_factors.is_enrolled(request.user))
    context = {
        **admin.site.each_context(request),
        "title": _("Is it you?"),
        "form": form,
        "options": passkeys.request_options(request, request.user),
        "repeated": list(_repeated(request)),
        "is_only_asked": request.method != "POST" or ONLY_ASKED in request.POST,
        "has_failed": has_failed,
        "minutes": int(PERIOD.total_seconds() / 60),
        "address": request.get_full_path(),
    }
    answer = TemplateResponse(request, "admin/people/confirmation.html", context)
    answer.headers["Cache-Control"] = "no-store"
    return answer.render()


def _repeated(request: HttpRequest) -> Iterator[tuple[str, str]]:
    """The fields of the form. A password or another secret never comes back in a page."""
    for name, values in request.POST.lists():
        if name in NOT_REPEATED or "password" in name:
            continue
        if name.startswith(SECRET_PREFIX):
            yield from ((DROPPED, name) for value in values if value)
        else:
            yield from ((name, value) for value in values)
