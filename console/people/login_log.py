"""What happens at each login and logout: the session begins, and the security log gets a line.

Django and allauth report them by signals and by a password validator. `console.apps` connects the receivers.
"""

from typing import Any

from allauth.mfa.models import Authenticator
from allauth.mfa.signals import authentication_failed, authenticator_used
from django.contrib import messages
from django.contrib.auth.models import AbstractBaseUser, User
from django.contrib.auth.signals import user_logged_in, user_logged_out, user_login_failed
from django.http import HttpRequest
from django.utils.translation import gettext as _

from console.people import lockouts, sign_in
from core import request_context
from core.observing import security_log
from core.observing.security_log import SecurityEvent

UNKNOWN_SUBJECT = "staff:?"


def connect() -> None:
    authentication_failed.connect(on_failed_second_step)
    authenticator_used.connect(on_second_step)
    user_logged_in.connect(on_login)
    user_logged_out.connect(on_logout)
    user_login_failed.connect(on_failed_login)


def on_login(sender: Any, request: HttpRequest, user: AbstractBaseUser, **kwargs: Any) -> None:
    request_context.set_actor(subject_of(user))
    sign_in.begin(request, user)
    security_log.record(SecurityEvent.LOGIN, subject=subject_of(user))


def on_logout(sender: Any, request: HttpRequest, user: AbstractBaseUser | None, **kwargs: Any) -> None:
    if user is not None:  # a logout without a session
        security_log.record(SecurityEvent.LOGOUT, subject=subject_of(user))


def on_failed_login(sender: Any, credentials: dict[str, Any], **kwargs: Any) -> None:
    """Log only names of existing users: people sometimes type the password into the name field."""
    name = str(credentials.get(User.USERNAME_FIELD, ""))
    is_known = "\0" not in name and User.objects.filter(username=name).exists()
    security_log.record(SecurityEvent.LOGIN_FAILED, subject=f"staff:{name}" if is_known else UNKNOWN_SUBJECT)


def on_failed_second_step(sender: Any, request: HttpRequest, user: AbstractBaseUser, **kwargs: Any) -> None:
    security_log.record(SecurityEvent.SECOND_FACTOR_FAILED, subject=subject_of(user))
    lockouts.log_if_reached(request, lockouts.CODES, lockouts.key_of_codes(user), subject_of(user))


def on_second_step(
    sender: Any, request: HttpRequest, user: AbstractBaseUser, authenticator: Any, **kwargs: Any
) -> None:
    subject = subject_of(user)
    security_log.record(SecurityEvent.SECOND_FACTOR_ACCEPTED, subject=subject, code=authenticator.type)
    if authenticator.type == Authenticator.Type.RECOVERY_CODES:
        authenticator.refresh_from_db()  # it is as it was before its code was used
        left = len(authenticator.wrap().get_unused_codes())
        text = _("You used a recovery code. %(left)d are left. Set up your app again if you lost it.")
        messages.warning(request, text % {"left": left})


class PasswordChangeLogger:
    """A password validator that accepts everything. Django calls `password_changed` after a change."""

    def validate(self, password: str, user: AbstractBaseUser | None = None) -> None:
        pass

    def password_changed(self, password: str, user: AbstractBaseUser) -> None:
        security_log.record(SecurityEvent.PASSWORD_CHANGED, subject=subject_of(user))

    def get_help_text(self) -> str:
        return ""


def record_change(event: SecurityEvent, person: AbstractBaseUser, *changes: str) -> None:
    """A line about what changed of a login, after the commit."""
    security_log.record_on_commit(event, subject=subject_of(person), changes=changes)


def subject_of(user: AbstractBaseUser) -> str:
    return request_context.actor_of(user)
