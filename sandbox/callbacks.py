"""Callbacks to the service: claim what is due, send it with no transaction open, note what came of it."""

import hmac
from dataclasses import dataclass
from datetime import datetime, timedelta

import requests
from django.conf import settings
from django.db.models import F
from django.db.models.functions import Now

from core import clock, due_work
from sandbox.models import CallbackState, SandboxCallback

CONNECT_SECONDS, READ_SECONDS = 2, 10
# Longer than a sending can take, so that only calls of a sender that died come due by it.
LEASE = timedelta(seconds=60)
# After the first failure, the second and so on: 24 hours in all.
RETRY_DELAYS = [timedelta(seconds=seconds) for seconds in (1, 2, 5, 10, 30, 60, 120, 300, 600, *[1800] * 47)]


@dataclass(frozen=True, slots=True)
class CallbackResult:
    """What came of one sending: an HTTP status, or the reason why there is none."""

    callback: SandboxCallback
    status: int | None
    error: str = ""

    @property
    def is_delivered(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


def run_once(limit: int = 100) -> int:
    """Send what is due, one after the other; returns how many."""
    callbacks = claim(limit)
    for callback in callbacks:
        record_result(send(callback), now=clock.now())
    return len(callbacks)


def claim(limit: int) -> list[SandboxCallback]:
    """Claim up to `limit` callbacks that are due."""
    due = SandboxCallback.objects.due()
    callbacks = due_work.claim(due, limit, due_at=Now() + LEASE, attempts=F("attempts") + 1)
    for callback in callbacks:
        callback.attempts += 1
    return callbacks


def send(callback: SandboxCallback) -> CallbackResult:
    """Post a call once: at most 12 seconds. Asks no database and raises nothing."""
    body = callback.body.encode()
    headers = {
        "Content-Type": "application/json",
        "User-Agent": "sandbox-bank",
        "Sandbox-Bank-Signature": sign(body, clock.now(), settings.SANDBOX_BANK_SECRET),
    }
    try:
        return CallbackResult(callback, _post(f"{settings.BASE_URL}/banks/sandbox/notices", body, headers))
    except Exception as error:  # whatever it was, it is this call's trouble and not the sender's
        return CallbackResult(callback, None, type(error).__name__)


def sign(body: bytes, at: datetime, secret: str) -> str:
    """The value of the signature header."""
    sent_at = str(int(at.timestamp()))
    signature = hmac.digest(secret.encode(), sent_at.encode() + b"." + body, "sha256").hex()
    return f"t={sent_at},v1={signature}"


def record_result(result: CallbackResult, *, now: datetime) -> None:
    """Write down what came of a sending; a later attempt's row is not touched."""
    callback = result.callback
    fields: dict[str, object] = {"last_status": result.status, "last_error": result.error}
    if result.is_delivered:
        fields |= {"state": CallbackState.DELIVERED, "ended_at": now}
    elif callback.attempts > len(RETRY_DELAYS):
        fields |= {"state": CallbackState.GIVEN_UP, "ended_at": now}
    else:
        fields |= {"due_at": Now() + RETRY_DELAYS[callback.attempts - 1]}
    SandboxCallback.objects.filter(
        pk=callback.pk, attempts=callback.attempts, state=CallbackState.WAITING
    ).update(**fields)


def _post(url: str, body: bytes, headers: dict[str, str]) -> int:
    with requests.Session() as session:
        # A proxy of the environment is for the outside; the service is our neighbour.
        session.trust_env = False
        response = session.post(
            url,
            data=body,
            headers=headers,
            timeout=(CONNECT_SECONDS, READ_SECONDS),
            allow_redirects=False,
            stream=True,  # the status is all we want: a body that never ends must not hold us
        )
        response.close()
        return response.status_code
