"""What an admin can do to the login of a colleague."""

from datetime import datetime
from functools import partial
from typing import Any

from allauth.mfa.models import Authenticator
from allauth.mfa.utils import is_mfa_enabled
from allauth.socialaccount.models import SocialAccount
from allauth.usersessions.models import UserSession
from django.utils.translation import gettext_lazy

from audit_trail.act_pages import ObjectAct
from audit_trail.acts import Act
from console.people import sign_in
from console.people.login_log import record_change
from core.observing.security_log import SecurityEvent


def _reset(person: Any, values: dict[str, Any], now: datetime) -> None:
    Authenticator.objects.filter(user=person).delete()
    SocialAccount.objects.filter(user=person).delete()
    sign_in.end_sessions(person)
    record_change(SecurityEvent.SECOND_FACTOR_CHANGED, person, "-all")


def _end(person: Any, values: dict[str, Any], now: datetime) -> None:
    sign_in.end_sessions(person)
    record_change(SecurityEvent.SESSIONS_ENDED, person)


def _set_active(person: Any, is_active: bool) -> None:
    person.is_active = is_active
    person.save(update_fields=["is_active"])
    if not is_active:
        sign_in.end_sessions(person)
    record_change(SecurityEvent.ROLE_CHANGED, person, f"{'+' if is_active else '-'}is_active")


_act = partial(ObjectAct, words={"name": "username"})
STAFF_ACTS = (
    _act(
        "disable", gettext_lazy("Disable"), Act.LOGIN_DISABLED, "auth.change_user",
        gettext_lazy("%(name)s can no longer log in, and all sessions end. Roles and records stay."),
        lambda person, values, now: _set_active(person, False),
        is_possible=lambda person, now: person.is_active, is_dangerous=True,
    ),
    _act(
        "enable", gettext_lazy("Enable"), Act.LOGIN_ENABLED, "auth.change_user",
        gettext_lazy("%(name)s can log in again, with the same roles as before."),
        lambda person, values, now: _set_active(person, True),
        is_possible=lambda person, now: not person.is_active,
    ),
    _act(
        "reset-second-step", gettext_lazy("Reset the second step"), Act.SECOND_FACTOR_RESET,
        "console.reset_second_factor",
        gettext_lazy(
            "The app, the passkeys, the recovery codes and the company's login of %(name)s no longer "
            "work, and all sessions end. At the next login, the password alone is enough to set up a new "
            "app. So make sure that it is really %(name)s who asks."
        ),
        _reset,
        is_possible=lambda person, now: (
            is_mfa_enabled(person) or SocialAccount.objects.filter(user=person).exists()
        ),
        is_dangerous=True,
    ),
    _act(
        "end-sessions", gettext_lazy("End sessions"), Act.SESSIONS_ENDED, "console.end_sessions",
        gettext_lazy("All sessions of %(name)s end at once. Logging in again is possible."),
        _end,
        is_possible=lambda person, now: UserSession.objects.filter(user=person).exists(),
    ),
)  # fmt: skip
