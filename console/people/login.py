"""Passwords of the console: one at a time is hashed, and failures are limited before that.

A lockout ends by itself. A browser in which a user logged in before has a separate count. So a guesser
elsewhere cannot lock out the user ("device cookies" of OWASP).
"""

from typing import Any

from django.conf import settings
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import salted_hmac

from core.console import passwords

DEVICE_SALT = "console.device"
DIGEST_SALT = "console.login"  # a constant: known browsers have digests with it
DEVICE_SECONDS = 180 * 24 * 3600
# A login on a known device waits for the hashing slot. Others do not, so guessers hold no thread.
KNOWN_DEVICE_WAIT_SECONDS = 5.0


class OneAtATimeBackend(ModelBackend):
    def authenticate(
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
        **kwargs: Any,
    ) -> User | None:
        """Raises HashingBusyError while this process hashes another password."""
        is_known = request is not None and username is not None and is_known_device(request, username)
        with passwords.hashing_slot(KNOWN_DEVICE_WAIT_SECONDS if is_known else 0.0):
            return super().authenticate(request, username, password, **kwargs)


def remember_device(request: HttpRequest, response: HttpResponse) -> None:
    """Set the device cookie if this request checked a password."""
    if (username := getattr(request, "checked_user", None)) is not None:
        response.set_signed_cookie(
            settings.DEVICE_COOKIE_NAME,
            _digests(username)[0],
            salt=DEVICE_SALT,
            max_age=DEVICE_SECONDS,
            secure=settings.SESSION_COOKIE_SECURE,
            httponly=True,
            samesite="Strict",
        )


def is_known_device(request: HttpRequest, username: str) -> bool:
    """Whether this user logged in before in this browser."""
    owner = request.get_signed_cookie(settings.DEVICE_COOKIE_NAME, "", DEVICE_SALT, DEVICE_SECONDS)
    return owner in _digests(username)


def _digests(username: str) -> list[str]:
    """Digests with SECRET_KEY and with each fallback."""
    keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    return [salted_hmac(DIGEST_SALT, username, secret=key).hexdigest()[:32] for key in keys]
