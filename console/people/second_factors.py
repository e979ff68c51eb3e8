"""The second factor of staff: codes of an authenticator app, and recovery codes.

Wrong codes count as failed logins do (`console.lockouts`). A code is accepted once: the database lets the
time step of the newest code only rise.
"""

import base64
import hashlib
import hmac
import os
import re
from collections.abc import Callable
from datetime import datetime
from enum import StrEnum
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django_otp import oath

from console import lockouts, login
from console.lockouts import LoginSubject
from console.login_log import subject_of
from console.models import Passkey, RecoveryCode, SecondFactor
from core import security_log, vault
from core.security_log import SecurityEvent

SECRET_BYTES = 20  # RFC 4226, section 4: 160 bits
STEP_SECONDS, DIGITS = 30, 6
# The clock of a phone may differ by a step.
TOLERANCE = 1
RECOVERY_CODES, RECOVERY_BYTES = 10, 10
# A guesser with the password has 480 attempts a day: 1 in 700 to find a code.
FAILURES_PER_USER = 5
_SEPARATORS = re.compile(r"[\s-]+")
_APP_CODE = re.compile(r"[0-9]{6}", re.ASCII)


class WrongCode(Exception):
    """The code is wrong, or was used before."""


class AlreadyEnrolled(Exception):
    """There is a second factor, and it should not be replaced."""


class Kind(StrEnum):
    """What somebody proved."""

    APP = "app"
    RECOVERY_CODE = "recovery_code"
    PASSKEY = "passkey"


def is_enrolled(user: Any) -> bool:
    return SecondFactor.objects.filter(user=user).exists()


def new_secret() -> str:
    """A random secret in base32, as authenticator apps read it."""
    return base64.b32encode(os.urandom(SECRET_BYTES)).decode()


def address_for_app(user: User, secret: str) -> str:
    """The text of the QR code that an app reads. The host tells several services apart."""
    host = urlsplit(settings.BASE_URL).hostname or ""
    label = quote(f"{host}:{user.get_username()}")
    return f"otpauth://totp/{label}?{urlencode({'secret': secret, 'issuer': host})}"


def enrol(user: User, secret: str, code: str, *, is_replacement: bool, now: datetime) -> list[str]:
    """Store the secret as the second factor if the app made `code` of it. Return new recovery codes.

    Raises WrongCode, and AlreadyEnrolled if there is one that must not be replaced.
    """
    step = _step_of(secret, code, now)
    if step is None:
        raise WrongCode
    with transaction.atomic():
        _lock(user)
        if not is_replacement and is_enrolled(user):
            raise AlreadyEnrolled
        remove(user)
        sealed = vault.seal(secret, context=SecondFactor.context_of(user.pk))
        SecondFactor.objects.create(user=user, secret_sealed=sealed, created_at=now, last_step=step)
        return renew_recovery_codes(user)


def remove(user: User) -> None:
    """Remove the second factor with its recovery codes and passkeys."""
    with transaction.atomic():
        _lock(user)
        for model in (SecondFactor, RecoveryCode, Passkey):
            model.objects.filter(user=user).delete()


def renew_recovery_codes(user: User) -> list[str]:
    """Replace all recovery codes. Only their digests are stored."""
    codes = [_new_recovery_code() for _ in range(RECOVERY_CODES)]
    with transaction.atomic():
        _lock(user)
        RecoveryCode.objects.filter(user=user).delete()
        RecoveryCode.objects.bulk_create(RecoveryCode(user=user, digest=_digest(code)) for code in codes)
    return codes


def unused_recovery_codes(user: User) -> int:
    return RecoveryCode.objects.filter(user=user, used_at=None).count()


def check_code(user: User, code: str, *, now: datetime) -> Kind:
    """Accept a code of the app, or a recovery code, once.

    Raises WrongCode, and LockedOutError after too many.
    """
    return check(user, lambda: _accept(user, _SEPARATORS.sub("", code).upper(), now), now=now)


def check(user: User, accept: Callable[[], Kind | None], *, now: datetime) -> Kind:
    """Count an attempt, and return what `accept` accepts. Raises WrongCode and LockedOutError."""
    subjects = [login.address_subject(), LoginSubject(f"code:{user.get_username()}", FAILURES_PER_USER)]
    lockouts.check_not_locked_out(subjects, now=now)
    # Count before the check, so that requests at once cannot exceed the limit.
    last_allowed = lockouts.count_attempt(subjects, now=now)
    kind = accept()
    if kind is None:
        security_log.record(SecurityEvent.SECOND_FACTOR_FAILED, subject=subject_of(user))
        lockouts.log_lockouts(last_allowed)
        raise WrongCode
    lockouts.reset_after_login(subjects)
    security_log.record(SecurityEvent.SECOND_FACTOR_ACCEPTED, subject=subject_of(user), code=kind)
    return kind


def _lock(user: User) -> None:
    """Let two changes of one person's second factor take turns."""
    User.objects.select_for_update().get(pk=user.pk)


def _accept(user: User, code: str, now: datetime) -> Kind | None:
    if not _APP_CODE.fullmatch(code):
        found = RecoveryCode.objects.filter(user=user, digest=_digest(code), used_at=None)
        return Kind.RECOVERY_CODE if found.update(used_at=now) else None
    factor = SecondFactor.objects.filter(user=user).first()
    step = None if factor is None else _step_of(factor.secret, code, now)
    # One statement, so that of two requests with the same code one is refused.
    if step is None or not SecondFactor.objects.filter(user=user, last_step__lt=step).update(last_step=step):
        return None
    return Kind.APP


def _step_of(secret: str, code: str, now: datetime) -> int | None:
    """The time step whose code this is, or None. A step has one code, so a replay finds the same step."""
    key, current = base64.b32decode(secret), int(now.timestamp()) // STEP_SECONDS
    given = _SEPARATORS.sub("", code)
    for step in range(current - TOLERANCE, current + TOLERANCE + 1):
        expected = f"{oath.hotp(key, step, DIGITS):0{DIGITS}}"
        if hmac.compare_digest(expected.encode(), given.encode()):
            return step
    return None


def _new_recovery_code() -> str:
    text = base64.b32encode(os.urandom(RECOVERY_BYTES)).decode().lower()
    return "-".join(text[start : start + 4] for start in range(0, len(text), 4))


def _digest(code: str) -> str:
    return hashlib.sha256(_SEPARATORS.sub("", code).upper().encode()).hexdigest()
