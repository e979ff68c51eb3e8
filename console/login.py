"""The console's login: failures are limited per address and per user before any password is hashed.

A lock-out ends by itself. Staff who logged in before from the same browser have a count of their own, so that
somebody elsewhere who guesses their password cannot lock them out (the "device cookie" of OWASP).
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
from core import addresses, clock, passwords, request_context

DEVICE_SALT = "console.device"
DEVICE_SECONDS = 180 * 24 * 3600
# Staff on a known device may wait for the hashing slot; guessers never hold a thread for it.
KNOWN_DEVICE_WAIT_SECONDS = 5.0
FAILURES_PER_ADDRESS = 20
FAILURES_PER_USER = 10


class ThrottledBackend(ModelBackend):
    """Checks a password only while neither the address nor the user is locked out."""

    def authenticate(
        self,
        request: HttpRequest | None,
        username: str | None = None,
        password: str | None = None,
        **kwargs: Any,
    ) -> User | None:
        """Raises LockedOutError, and HashingBusyError while another login of this process is hashed."""
        if request is None or username is None or password is None:
            return super().authenticate(request, username, password, **kwargs)
        now, device = clock.now(), _device_of(request, username)
        subjects = [_address_subject(), _user_subject(username, device)]
        lockouts.check_not_locked_out(subjects, now=now)
        with passwords.hashing_slot(KNOWN_DEVICE_WAIT_SECONDS if device else 0.0):
            # Counted before the hash: attempts in several processes at once cannot exceed the limit.
            last_allowed = lockouts.count_attempt(subjects, now=now)
            user = super().authenticate(request, username, password, **kwargs)
        if user is None:
            lockouts.log_lockouts(last_allowed)
        else:
            lockouts.reset_after_login(subjects)
            request.new_device = _new_device(username)  # type: ignore[attr-defined]
        return user


def remember_device(request: HttpRequest, response: HttpResponse) -> None:
    """Set the cookie that the login of this request earned, if any."""
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
    """The id of a browser in which this user logged in before; empty for any other."""
    try:
        owner, device = signing.loads(
            request.COOKIES.get(settings.DEVICE_COOKIE_NAME, ""), salt=DEVICE_SALT, max_age=DEVICE_SECONDS
        )
    except signing.BadSignature:
        return ""
    return str(device) if owner in _digests(username) else ""


def _address_subject() -> LoginSubject:
    """An IPv6 client has a whole /64 to choose from, so that counts as one address."""
    network = addresses.network_of(request_context.current().address, ipv6_bits=64)
    return LoginSubject(f"address:{network or 'unknown'}", FAILURES_PER_ADDRESS)


def _user_subject(username: str, device: str) -> LoginSubject:
    """An unknown name may be a password in the wrong field: only a digest of it is stored."""
    if device:
        return LoginSubject(f"device:{device}", FAILURES_PER_USER)
    is_known = User.objects.filter(username=username).exists()
    return LoginSubject(f"user:{username}" if is_known else f"name:{_digest(username)}", FAILURES_PER_USER)


def _digest(username: str) -> str:
    return _digests(username)[0]


def _digests(username: str) -> list[str]:
    """By SECRET_KEY, then by each of its fallbacks."""
    keys = [settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS]
    return [salted_hmac("console.login", username, secret=key).hexdigest()[:32] for key in keys]
