"""HTTP requests to banks and acquirers, with a deadline, and with two errors for a missing answer."""

import socket
import time
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Literal, cast

import requests
from requests import PreparedRequest
from requests.adapters import HTTPAdapter
from requests.exceptions import ConnectTimeout, RequestException, Timeout
from urllib3 import HTTPConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import NewConnectionError, ReadTimeoutError

from core import tls
from core.deadlines import Deadline
from core.http import strict_json
from core.http.strict_json import JsonRefused
from core.observing import measurements, telemetry

MAX_RESPONSE_BYTES = 1_048_576
FailureCause = Literal["timeout", "unreachable", "credentials", "other"]
"""Why there is no readable answer. `credentials`: the bank answered, and refused ours."""


class CallFailed(Exception):
    """No readable answer. outcome: what this means for an order or charge."""

    outcome: ClassVar[Literal["not_sent", "unknown"]]

    def __init__(self, cause: FailureCause = "other") -> None:
        super().__init__()
        self.cause = cause


class NotSent(CallFailed):
    """There was no connection, or none with a deadline, so the request surely did not arrive."""

    outcome = "not_sent"


class NoResponse(CallFailed):
    """The request may have arrived, but no readable answer came in time."""

    outcome = "unknown"


@dataclass(frozen=True, slots=True)
class Response:
    """An answer: its status, its JSON object, and its body byte for byte."""

    status: int
    data: dict[str, Any]
    body: bytes = field(default=b"", repr=False)


def request(
    method: str,
    url: str,
    *,
    bank: str,
    timeout: tuple[float, float],
    ends_at: Deadline | None = None,
    is_internal: bool = False,
    **options: Any,
) -> Response:
    """Send a request once, and measure it. Raises NotSent, NoResponse.

    bank: the name of the bank or acquirer, for the metrics. timeout: seconds to connect, and seconds of
    silence. ends_at: the end of the whole request; without it, the sum of the two. is_internal: ignore the
    proxies of the environment.
    """
    deadline, began, result = ends_at or Deadline.after(sum(timeout)), time.perf_counter(), "other"
    try:
        with telemetry.bank_call(bank):
            response = _send(method, url, timeout, deadline, is_internal=is_internal, **options)
        is_refused = cause_of_status(response.status) == "credentials"
        result = "credentials" if is_refused else f"http_{response.status // 100}xx"
        return response
    except CallFailed as error:
        result = error.cause
        raise
    finally:
        measurements.OF_PROCESS.add(measurements.BANK_CALL, (bank, result), time.perf_counter() - began)


def _send(
    method: str,
    url: str,
    timeout: tuple[float, float],
    deadline: Deadline,
    *,
    is_internal: bool,
    **options: Any,
) -> Response:
    """Raises NotSent, NoResponse."""
    with requests.Session() as session, ExitStack() as stack:
        session.trust_env = not is_internal
        options.setdefault("verify", tls.ca_file())
        session.mount("https://", DeadlineAdapter(deadline, stack))
        session.mount("http://", DeadlineAdapter(deadline, stack))
        try:
            response = stack.enter_context(
                session.request(method, url, timeout=timeout, allow_redirects=False, stream=True, **options)
            )
            body = _read_body(response)
            if deadline.is_past:
                raise NoResponse("timeout")  # the body may have been cut
            return Response(response.status_code, strict_json.loads(body), body)
        except RequestException as error:
            cause: FailureCause = "timeout" if deadline.is_past else _cause_of(error)
            raise NotSent(cause) if _was_never_sent(error) else NoResponse(cause) from None
        except JsonRefused:
            raise NoResponse() from None


def _read_body(response: requests.Response) -> bytes:
    """The body, up to MAX_RESPONSE_BYTES. A longer body is cut, so it does not parse as JSON."""
    body = b""
    for piece in response.iter_content(MAX_RESPONSE_BYTES):
        body += piece
        if len(body) > MAX_RESPONSE_BYTES:
            break
    return body[:MAX_RESPONSE_BYTES]


def _was_never_sent(error: RequestException) -> bool:
    reason = getattr(error.args[0], "reason", None) if error.args else None
    return isinstance(error, ConnectTimeout) or isinstance(reason, NewConnectionError)


def _cause_of(error: RequestException) -> FailureCause:
    # A timeout while the body is read is a ConnectionError of `requests`.
    if isinstance(error, Timeout) or (error.args and isinstance(error.args[0], ReadTimeoutError)):
        return "timeout"
    return "unreachable" if _was_never_sent(error) else "other"


def cause_of_status(status: int) -> FailureCause:
    """What an answer with this HTTP status says about the credentials."""
    return "credentials" if status in (401, 403) else "other"


Watch = Callable[[socket.socket], Any]


class WatchedConnection(HTTPConnection):
    def __init__(self, watch: Watch, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._start_watching = watch

    def connect(self) -> None:
        super().connect()
        try:
            self._start_watching(self.sock)
        except RuntimeError:  # no thread is free for the deadline, and nothing was sent yet
            raise NotSent from None


class WatchedTlsConnection(WatchedConnection, HTTPSConnection):
    pass


class DeadlineAdapter(HTTPAdapter):
    """Watches its connections until the stack ends: after the deadline they are shut down."""

    def __init__(self, deadline: Deadline, stack: ExitStack) -> None:
        super().__init__()
        self._watch: Watch = lambda sock: stack.enter_context(deadline.shuts_down(sock))

    def get_connection_with_tls_context(
        self, request: PreparedRequest, *args: Any, **options: Any
    ) -> HTTPConnectionPool:
        pool = cast(HTTPConnectionPool, super().get_connection_with_tls_context(request, *args, **options))
        connection_class = WatchedTlsConnection if pool.scheme == "https" else WatchedConnection
        pool.ConnectionCls = partial(connection_class, self._watch)  # type: ignore[assignment]
        return pool
