"""Callbacks of the sandbox bank: claim due ones, send them without a transaction, store the results."""

import hmac
import logging
import math
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from queue import Empty, Queue

import requests
from django.conf import settings
from django.db import connection
from django.db.models import F
from django.db.models.functions import Now

from core import clock, tls
from core.database.availability import CONNECTION_ERRORS
from core.work import due_work
from sandbox.models import CallbackState, SandboxCallback

log = logging.getLogger("sandbox")
CONNECT_SECONDS, READ_SECONDS = 2, 10
# Longer than a request takes, so that a lease ends only if its worker died.
LEASE = timedelta(seconds=60)
# Seconds after each failure: 24 hours in all.
RETRY_DELAYS = [timedelta(seconds=seconds) for seconds in (1, 2, 5, 10, 30, 60, 120, 300, 600, *[1800] * 47)]
MAX_CONCURRENT = 8
POLL_SECONDS, PAUSE_SECONDS, STOP_SECONDS = 0.25, 0.5, 2.0


@dataclass(frozen=True, slots=True)
class CallbackResult:
    """The result of one request: an HTTP status, or the name of the error."""

    callback: SandboxCallback
    status: int | None
    error: str = ""

    @property
    def is_delivered(self) -> bool:
        return self.status is not None and 200 <= self.status < 300


def run_once(limit: int = 100) -> int:
    """Send the callbacks that are due, one after the other. Returns their number."""
    callbacks = claim(limit)
    for callback in callbacks:
        record_result(send(callback), now=clock.now())
    return len(callbacks)


def claim(limit: int) -> list[SandboxCallback]:
    due = SandboxCallback.objects.due()
    callbacks = due_work.claim(due, limit, due_at=Now() + LEASE, attempts=F("attempts") + 1)
    for callback in callbacks:
        callback.attempts += 1
    return callbacks


def send(callback: SandboxCallback) -> CallbackResult:
    """Send a callback once, in at most 12 s, without using the database. Errors are results."""
    body = callback.body.encode()
    headers = {"Content-Type": "application/json", "User-Agent": "sandbox-bank"}
    headers["Sandbox-Bank-Signature"] = sign(body, str(int(clock.now().timestamp())))
    try:
        with requests.Session() as session:
            session.trust_env = False  # the service is on this network: ignore proxies of the environment
            response = session.post(
                f"{settings.BASE_URL}/banks/sandbox/notifications",
                data=body,
                headers=headers,
                timeout=(CONNECT_SECONDS, READ_SECONDS),
                allow_redirects=False,
                verify=tls.ca_file(),
                stream=True,  # only the status is needed, and the body could be endless
            )
            response.close()
        return CallbackResult(callback, response.status_code)
    except Exception as error:  # no error of one callback may stop the others
        return CallbackResult(callback, None, type(error).__name__)


def sign(message: bytes, sent_at: str) -> str:
    """`Sandbox-Bank-Signature`: `t=<unix seconds>,v1=<hex HMAC-SHA256 of "<t>.<message>">`."""
    secret = settings.SANDBOX_BANK_SECRET.encode()
    return f"t={sent_at},v1={hmac.digest(secret, sent_at.encode() + b'.' + message, 'sha256').hex()}"


def record_result(result: CallbackResult, *, now: datetime) -> None:
    """Store the result of an attempt, unless a later attempt has claimed the callback."""
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


class CallbackWorker:
    """Sends due callbacks in up to MAX_CONCURRENT threads until it is stopped.

    Only the main thread uses the database. Several processes may run one worker each. If a result cannot be
    stored, the lease ends and the callback is sent again; the service recognises repetitions by their id.
    """

    def __init__(self) -> None:
        self._is_stopping = False

    def stop(self) -> None:
        """Claim nothing more, and wait 2 s for running requests. Safe to call in a signal handler."""
        self._is_stopping = True

    def run(self) -> None:
        log.info("Callbacks go to %s.", settings.BASE_URL)
        results: Queue[CallbackResult] = Queue()
        running, ends_at = 0, math.inf
        while (running or not self._is_stopping) and time.monotonic() < ends_at:
            if self._is_stopping:
                ends_at = min(ends_at, time.monotonic() + STOP_SECONDS)
            try:
                # A claim takes ten times as long as this look, and mostly nothing is due.
                if not self._is_stopping and SandboxCallback.objects.due().exists():
                    for callback in claim(MAX_CONCURRENT - running):
                        running += 1
                        threading.Thread(target=_send_into, args=(results, callback), daemon=True).start()
                with suppress(Empty):
                    result = results.get(timeout=POLL_SECONDS)
                    running -= 1
                    record_result(result, now=clock.now())
            except CONNECTION_ERRORS as error:
                log.warning("The database does not answer: %s", error)
                connection.close()
                time.sleep(PAUSE_SECONDS)


def _send_into(results: "Queue[CallbackResult]", callback: SandboxCallback) -> None:
    results.put(send(callback))
