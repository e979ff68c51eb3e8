"""One question to a bank or an acquirer over HTTP, and what can be known when the answer does not come."""

import socket
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any, cast

import requests
from requests import PreparedRequest
from requests.adapters import HTTPAdapter
from requests.exceptions import ConnectTimeout, RequestException
from urllib3 import HTTPConnectionPool
from urllib3.connection import HTTPConnection, HTTPSConnection
from urllib3.exceptions import NewConnectionError

from core import strict_json
from core.deadlines import Deadline, Watchdog
from core.errors import InvalidRequest

MAX_RESPONSE_BYTES = 1_048_576


class NotSent(Exception):
    """There was no connection by which the question could have left."""


class NoResponse(Exception):
    """It may have arrived; no answer came in time, or none that can be read."""


@dataclass(frozen=True, slots=True)
class Response:
    """What was answered; `body` is the same byte for byte."""

    status: int
    data: dict[str, Any]
    body: bytes = field(default=b"", repr=False)


def request(
    method: str,
    url: str,
    *,
    timeout: tuple[float, float],
    ends_at: Deadline | None = None,
    is_internal: bool = False,
    **options: Any,
) -> Response:
    """Ask once. Raises NotSent, NoResponse.

    timeout: seconds to connect, and of silence. ends_at: when whatever comes is over; the sum of these if not
    given.
    """
    deadline = ends_at or Deadline.after(sum(timeout))
    with requests.Session() as session, ExitStack() as stack:
        session.trust_env = not is_internal  # a proxy of the environment is for the outside
        session.mount("https://", DeadlineAdapter(deadline, stack))
        session.mount("http://", DeadlineAdapter(deadline, stack))
        try:
            response = stack.enter_context(
                session.request(method, url, timeout=timeout, allow_redirects=False, stream=True, **options)
            )
            body = _read_body(response)
            if deadline.is_past:
                raise NoResponse()  # what looks like the end may be where it was cut off
            return Response(response.status_code, strict_json.loads(body), body)
        except RequestException as error:
            raise NotSent() if _was_never_sent(error) else NoResponse() from None
        except InvalidRequest:
            raise NoResponse() from None


def _read_body(response: requests.Response) -> bytes:
    """The body, whatever pieces it comes in; what is longer than any answer is cut and means nothing."""
    body = b""
    for piece in response.iter_content(MAX_RESPONSE_BYTES):
        body += piece
        if len(body) > MAX_RESPONSE_BYTES:
            break
    return body[:MAX_RESPONSE_BYTES]


def _was_never_sent(error: RequestException) -> bool:
    reason = getattr(error.args[0], "reason", None) if error.args else None
    return isinstance(error, ConnectTimeout) or isinstance(reason, NewConnectionError)


_watchdog = Watchdog()
Watch = Callable[[socket.socket], Any]


class WatchedConnection(HTTPConnection):
    def __init__(self, watch: Watch, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._start_watching = watch

    def connect(self) -> None:
        super().connect()
        self._start_watching(self.sock)


class WatchedTlsConnection(WatchedConnection, HTTPSConnection):
    """The same with TLS."""


class DeadlineAdapter(HTTPAdapter):
    """Watches its connections until the stack ends, whoever holds them by then."""

    def __init__(self, deadline: Deadline, stack: ExitStack) -> None:
        super().__init__()
        self._watch: Watch = lambda sock: stack.enter_context(_watchdog.watch(sock, deadline))

    def get_connection_with_tls_context(
        self, request: PreparedRequest, *args: Any, **options: Any
    ) -> HTTPConnectionPool:
        pool = cast(HTTPConnectionPool, super().get_connection_with_tls_context(request, *args, **options))
        connection_class = WatchedTlsConnection if pool.scheme == "https" else WatchedConnection
        pool.ConnectionCls = partial(connection_class, self._watch)  # type: ignore[assignment]
        return pool
