"""The login of the console. Limits per address and per user apply before a password is hashed.

A lockout ends by itself. A browser in which a user logged in before has a separate count. So a guesser
elsewhere cannot lock out the user ("device cookies" of OWASP).
"""

from typing import Any

from django.conf import settings
from django.contrib.auth.backends import ModelBackend
from django.contrib.auth.models import User
from django.core import signing
from django.http import HttpRequest, HttpResponse
from django.utils.crypto import get_random_string, salted_hmac

from console import lockouts
from console.lockouts import LoginSubject
from core import client_addresses, clock, passwords, request_context

DEVICE_SALT = "console.device"
DEVICE_SECONDS = 180 * 24 * 3600
# A login on a known device waits for the hashing slot. Others do not, so guessers hold no thread.
KNOWN_DEVICE_WAIT_SECONDS = 5.0
FAILURES_PER_ADDRESS = 20
FAILURES_PER_USER = 10


class ThrottledBackend(ModelBackend):
    """Checks a password only if neither the address nor the user is locked out."""

    def authenticate(
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
        **kwargs: Any,
    ) -> User | None:
        """Raises LockedOutError, or HashingBusyError while this process hashes another password."""
        if request is None or username is None or password is None:
            return super().authenticate(request, username, password, **kwargs)
        now, device = clock.now(), _device_of(request, username)
        subjects = [address_subject(), _user_subject(username, device)]
        lockouts.check_not_locked_out(subjects, now=now)
        with passwords.hashing_slot(KNOWN_DEVICE_WAIT_SECONDS if device else 0.0):
            # Count before hashing, so that attempts in several processes cannot exceed the limit.
            last_allowed = lockouts.count_attempt(subjects, now=now)
            user = super().authenticate(request, username, password, **kwargs)
        if user is None:
            lockouts.log_lockouts(last_allowed)
        else:
            lockouts.reset_after_login(subjects)
            request.new_device = _new_device(username)  # type: ignore[attr-defined]
        return user


def remember_device(request: HttpRequest, response: HttpResponse) -> None:
    """Set the device cookie if this request logged somebody in."""
    if (device := getattr(request, "new_device", None)) is not None:
        response.set_cookie(
            settings.DEVICE_COOKIE_NAME,
            device,
            max_age=DEVICE_SECONDS,
            secure=settings.SESSION_COOKIE_SECURE,
            httponly=True,
            samesite="Strict",
        )


def _new_device(username: str) -> str:
    return signing.dumps([_digest(username), get_random_string(22)], salt=DEVICE_SALT)


def _device_of(request: HttpRequest, username: str) -> str:
    """The id of the browser if this user logged in there before, else an empty text."""
    try:
        owner, device = signing.loads(
            request.COOKIES.get(settings.DEVICE_COOKIE_NAME, ""), salt=DEVICE_SALT, max_age=DEVICE_SECONDS
        )
    except signing.BadSignature:
        return ""
    return str(device) if owner in _digests(username) else ""


def address_subject() -> LoginSubject:
    """An IPv6 client controls a whole /64, which counts as one address."""
    network = client_addresses.network_of(request_context.current().address, ipv6_bits=64)
    return LoginSubject(f"address:{network or 'unknown'}", FAILURES_PER_ADDRESS)


def _user_subject(username: str, device: str) -> LoginSubject:
    """Store only a digest of an unknown name: it may be a password in the wrong field."""
    if device:
        return LoginSubject(f"device:{device}", FAILURES_PER_USER)
    is_known = User.objects.filter(username=username).exists()
    return LoginSubject(f"user:{username}" if is_known else f"name:{_digest(username)}", FAILURES_PER_USER)


def _digest(username: str) -> str:
    return _digests(username)[0]


def _digests(username: str) -> list[str]:
    """Digests with SECRET_KEY and with each fallback."""
    keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    return [salted_hmac("console.login", username, secret=key).hexdigest()[:32] for key in keys]
