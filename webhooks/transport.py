"""`requests` made safe for addresses that strangers choose."""

import http.client
import io
import ssl
from collections.abc import Mapping
from typing import Any

import requests
from requests.adapters import BaseAdapter
from requests.structures import CaseInsensitiveDict

from core.watchdog import Watchdog
from webhooks import connections
from webhooks.connections import Connection, PeerRefused, Route
from webhooks.idle import IdleConnections
from webhooks.networks import Address
from webhooks.reading import beginning_of

Faults = tuple[tuple[type[Exception], str], ...]

WHILE_CONNECTING: Faults = (
    (PeerRefused, "blocked"),
    (TimeoutError, "connect_timeout"),
    (ssl.SSLCertVerificationError, "tls_cert"),
    (ssl.SSLError, "tls_handshake"),
    (ConnectionResetError, "tls_handshake"),
    (OSError, "connect_refused"),
)
WHILE_TALKING: Faults = (
    (TimeoutError, "timeout"),
    (ssl.SSLEOFError, "reset"),
    (ssl.SSLError, "tls_handshake"),  # TLS 1.3 tells of a failed handshake with the first read
    (OSError, "reset"),
    (http.client.HTTPException, "protocol"),
)


class Failure(Exception):
    """No whole answer head arrived; `error` is the class of the fault, to keep with the attempt."""

    def __init__(self, error: str) -> None:
        super().__init__(error)
        self.error = error


class Post(requests.PreparedRequest):
    """A request made ready with its route: requests' own preparing would parse the URL once more."""

    def __init__(self, route: Route, *, body: bytes, headers: Mapping[str, str]) -> None:
        super().__init__()
        self.method, self.url = "POST", route.target.url
        self.content = self.body = body
        self.headers = CaseInsensitiveDict({**headers, "Accept-Encoding": "identity"})
        self.route = route
        self.peer: Address | None = None


class Session(requests.Session):
    """A session that takes nothing from the environment and follows nothing."""

    def __init__(self, adapter: BaseAdapter) -> None:
        super().__init__()
        self.trust_env = False
        self.mount("https://", adapter)
        self.mount("http://", adapter)

    def get_redirect_target(self, _resp: requests.Response) -> str | None:
        """None: with redirects off requests would still parse the Location, whatever it holds."""
        return None


class Adapter(BaseAdapter):
    """Sends a Post, on an idle connection where one leads to an address just judged."""

    def __init__(self) -> None:
        super().__init__()
        self._idle = IdleConnections()
        self._watchdog = Watchdog()

    def send(self, request: requests.PreparedRequest, *_args: Any, **_kwargs: Any) -> requests.Response:
        """The answer with at most 16 KiB of its body, as sent. Raises Failure."""
        if not isinstance(request, Post):
            raise TypeError("Only a Post knows where it may go.")
        reused = self._idle.take(request.route)
        if reused is not None:
            try:
                return self._exchange(reused, request)
            except Failure as failure:
                # Closed by the other side while idle: this post was never seen, so ask again at once.
                if failure.error != "reset" or reused.was_answered:
                    raise
        return self._exchange(_connected(request), request)

    def close(self) -> None:
        """Close what is idle."""
        self._idle.clear()

    def _exchange(self, connection: Connection, post: Post) -> requests.Response:
        post.peer = connection.peer
        with self._watchdog.over(connection.sock, post.route.answer_by):
            reply = _asked(connection, post)
            body, reusable = beginning_of(reply)
        reply.close()
        if reusable:
            self._idle.put(connection)
        else:
            connection.close()
        return _response(post, reply, body)


def _connected(post: Post) -> Connection:
    connection = connections.new(post.route)
    try:
        connection.connect()
    except (OSError, PeerRefused) as fault:
        connection.close()
        raise Failure(_class_of(fault, WHILE_CONNECTING)) from fault
    finally:
        post.peer = connection.peer
    return connection


def _asked(connection: Connection, post: Post) -> http.client.HTTPResponse:
    try:
        return connection.exchange(post.route, body=post.content, headers=post.headers)
    except (OSError, http.client.HTTPException) as fault:
        connection.close()
        # Whatever else it looks like: the watchdog may have cut it off.
        is_late = post.route.answer_by.is_past
        raise Failure("timeout" if is_late else _class_of(fault, WHILE_TALKING)) from fault


def _class_of(fault: Exception, faults: Faults) -> str:
    return next(name for kind, name in faults if isinstance(fault, kind))


def _response(post: Post, reply: http.client.HTTPResponse, body: bytes) -> requests.Response:
    response = requests.Response()
    response.status_code, response.reason = reply.status, reply.reason
    response.headers = CaseInsensitiveDict(reply.headers.items())
    response.url, response.request = post.route.target.url, post
    response.raw = io.BytesIO(body)
    return response
