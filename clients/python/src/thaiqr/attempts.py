"""The attempts of one call: what to send, whether to try again and after which pause, and the result.

It does no input or output, so that both clients share it.
"""

import logging
import random
import time
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import httpx

from thaiqr.calls import Call
from thaiqr.errors import BY_TYPE, ApiError, NetworkError, ServerError, UnexpectedResponseError

T = TypeVar("T")
log = logging.getLogger("thaiqr")

FIRST_PAUSE = 0.25
MAX_PAUSE = 8.0
MAX_RETRY_AFTER = 60
"""Seconds. If the service asks for a longer wait, the caller decides."""
FIRST_POLL, LONGEST_POLL, POLL_GROWTH = 1.0, 5.0, 1.5
"""The pauses of a call that is sent again until it is done, in seconds."""
IN_PROGRESS = "idempotency_key_in_progress"
# The service names these in headers of answers that otherwise look right.
WARNINGS = ("Warning-Amount", "Ignored-Parameters")


@dataclass
class Attempts(Generic[T]):
    """Ask `after_error` or `after_response` after each attempt. Both raise when no further one is due."""

    call: Call[T]
    max_retries: int
    failures: int = 0
    polls: int = 0
    began: float = field(default_factory=time.monotonic)

    def after_error(self, error: httpx.RequestError) -> float:
        """The pause before the next attempt, in seconds. Raises NetworkError."""
        if self.failures >= self.max_retries:
            url = error.request.url.copy_with(query=None)  # filters may have names
            message = f"{self.call.method} {url}: {str(error) or type(error).__name__}"
            raise NetworkError(message, idempotency_key=self.call.idempotency_key) from error
        return self._pause(str(error) or type(error).__name__, None)

    def after_response(self, response: httpx.Response) -> float | None:
        """The pause before the next attempt, in seconds; None after a success. Raises ApiError."""
        if response.is_success or self._is_deleted_before(response):
            return self._until_done(response)
        error = self._error(response)
        wait = error.retry_after
        if not _is_temporary(error) or self.failures >= self.max_retries or (wait or 0) > MAX_RETRY_AFTER:
            raise error
        return self._pause(f"{error.status} {error.code}", wait)

    def result(self, response: httpx.Response) -> T:
        """Read a successful answer. Raises UnexpectedResponseError."""
        for name in WARNINGS:
            if name in response.headers:
                log.warning("%s %s: %s: %s", *self._name(), name, response.headers[name])
        if self.call.method == "DELETE":
            return self.call.read(None)
        if self.call.is_file:
            return self.call.read(response.content)
        return self.call.read(_json(response))

    def _until_done(self, response: httpx.Response) -> float | None:
        """The pause before it is sent again, which grows; None when it is done."""
        if self.call.is_done is None:
            return None
        left = self.began + self.call.seconds - time.monotonic()
        if self.call.is_done(self.result(response), left <= 0):
            return None
        pause = min(FIRST_POLL * POLL_GROWTH ** min(self.polls, 9), LONGEST_POLL, left)
        self.failures, self.polls = 0, self.polls + 1
        return pause

    def _pause(self, reason: str, wait: int | None) -> float:
        longest = min(FIRST_PAUSE * 2**self.failures, MAX_PAUSE)
        pause = (wait or 0) + random.uniform(longest / 2, longest)  # noqa: S311 - spreads the retries
        self.failures += 1
        log.info("%s %s: %s; trying again in %.1f s", *self._name(), reason, pause)
        return pause

    def _is_deleted_before(self, response: httpx.Response) -> bool:
        """Whether an earlier attempt, whose answer was lost, has deleted the object."""
        return self.call.method == "DELETE" and self.failures > 0 and response.status_code == 404

    def _error(self, response: httpx.Response) -> ApiError:
        if response.is_redirect or response.is_informational:
            raise UnexpectedResponseError(f"The service answered {response.status_code}: check the base URL.")
        shown = _shown_error(response)
        default = ServerError if response.status_code >= 500 else ApiError
        return BY_TYPE.get(str(shown.get("type")), default)(
            shown,
            status=response.status_code,
            request_id=response.headers.get("X-Request-Id"),
            retry_after=_seconds(response.headers.get("Retry-After", "")),
            idempotency_key=self.call.idempotency_key,
        )

    def _name(self) -> tuple[str, str]:
        return self.call.method, self.call.path


def _is_temporary(error: ApiError) -> bool:
    return error.status >= 500 or error.status in {408, 429} or error.code == IN_PROGRESS


def _shown_error(response: httpx.Response) -> dict[str, Any]:
    """The error object. A proxy in between may answer in another form."""
    try:
        found = response.json()["error"]
    except (ValueError, KeyError, TypeError):
        found = None
    if isinstance(found, dict):
        return found
    reason = response.reason_phrase or "no reason given"
    return {"code": f"http_{response.status_code}", "message": f"The answer is not from the API: {reason}"}


def _json(response: httpx.Response) -> Any:
    try:
        return response.json()
    except ValueError:
        raise UnexpectedResponseError("The answer is no JSON: check the base URL.") from None


def _seconds(header: str) -> int | None:
    return int(header) if header.isascii() and header.isdigit() and len(header) < 10 else None
