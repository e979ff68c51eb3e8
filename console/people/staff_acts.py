"""What an admin can do to the login of a colleague."""

from datetime import datetime
from typing import Any

from allauth.mfa.models import Authenticator
from allauth.mfa.utils import is_mfa_enabled
from allauth.socialaccount.models import SocialAccount
from allauth.usersessions.models import UserSession
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from audit_trail.act_pages import ObjectAct
from audit_trail.acts import Act
from console.people import sign_in
from console.people.login_log import subject_of
from core.observing import security_log
from core.observing.security_log import SecurityEvent


def _explain_reset(person: Any) -> str:
    text = _(
        "The app, the passkeys, the recovery codes and the company's login of %(name)s no longer work, "
        "and all sessions end. At the next login, the password alone is enough to set up a new app. So "
        "make sure that it is really %(name)s who asks."
    )
    return text % {"name": person.get_username()}


def _reset(person: Any, values: dict[str, Any], now: datetime) -> None:
    Authenticator.objects.filter(user=person).delete()
    SocialAccount.objects.filter(user=person).delete()
    sign_in.end_sessions(person)
    security_log.record_on_commit(
        SecurityEvent.SECOND_FACTOR_CHANGED, subject=subject_of(person), changes=["-all"]
    )


def _is_enrolled(person: Any, now: datetime) -> bool:
    return bool(is_mfa_enabled(person) or SocialAccount.objects.filter(user=person).exists())


def _explain_end(person: Any) -> str:
    sessions = _("All sessions of %(name)s end at once. Logging in again is possible.")
    return sessions % {"name": person.get_username()}


def _end(person: Any, values: dict[str, Any], now: datetime) -> None:
    sign_in.end_sessions(person)
    security_log.record_on_commit(SecurityEvent.SESSIONS_ENDED, subject=subject_of(person))


def _has_sessions(person: Any, now: datetime) -> bool:
    return bool(UserSession.objects.filter(user=person).exists())


def _set_active(person: Any, is_active: bool) -> None:
    person.is_active = is_active
    person.save(update_fields=["is_active"])
    if not is_active:
        sign_in.end_sessions(person)
    change = f"{'+' if is_active else '-'}is_active"
    security_log.record_on_commit(SecurityEvent.ROLE_CHANGED, subject=subject_of(person), changes=[change])


STAFF_ACTS = (
    ObjectAct(
        slug="disable",
        label=gettext_lazy("Disable"),
        act=Act.LOGIN_DISABLED,
        permission="auth.change_user",
        explain=lambda person: (
            _("%(name)s can no longer log in, and all sessions end. Roles and records stay.")
            % {"name": person.get_username()}
        ),
        run=lambda person, values, now: _set_active(person, False),
        is_possible=lambda person, now: person.is_active,
        is_dangerous=True,
    ),
    ObjectAct(
        slug="enable",
        label=gettext_lazy("Enable"),
        act=Act.LOGIN_ENABLED,
        permission="auth.change_user",
        explain=lambda person: (
            _("%(name)s can log in again, with the same roles as before.") % {"name": person.get_username()}
        ),
        run=lambda person, values, now: _set_active(person, True),
        is_possible=lambda person, now: not person.is_active,
    ),
    ObjectAct(
        slug="reset-second-step",
        label=gettext_lazy("Reset the second step"),
        act=Act.SECOND_FACTOR_RESET,
        permission="console.reset_second_factor",
        explain=_explain_reset,
        run=_reset,
        is_possible=_is_enrolled,
        is_dangerous=True,
    ),
    ObjectAct(
        slug="end-sessions",
        label=gettext_lazy("End sessions"),
        act=Act.SESSIONS_ENDED,
        permission="console.end_sessions",
        explain=_explain_end,
        run=_end,
        is_possible=_has_sessions,
    ),
)
