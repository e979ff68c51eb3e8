"""`requests` made safe for addresses that strangers choose."""

import http.client
import io
import ssl
from collections.abc import Mapping
from typing import Any

import requests
from requests.adapters import BaseAdapter
from requests.structures import CaseInsensitiveDict

from core.deadlines import Watchdog
from webhooks.http import connections
from webhooks.http.connection_pool import ConnectionPool
from webhooks.http.connections import Connection, PeerNotAllowed, Route
from webhooks.http.public_networks import Address
from webhooks.http.response_reader import read_body

ErrorNames = tuple[tuple[type[Exception], str], ...]

CONNECT_ERRORS: ErrorNames = (
    (PeerNotAllowed, "blocked"),
    (TimeoutError, "connect_timeout"),
    (ssl.SSLCertVerificationError, "tls_cert"),
    (ssl.SSLError, "tls_handshake"),
    (ConnectionResetError, "tls_handshake"),
    (OSError, "connect_refused"),
)
EXCHANGE_ERRORS: ErrorNames = (
    (TimeoutError, "timeout"),
    (ssl.SSLEOFError, "reset"),
    (ssl.SSLError, "tls_handshake"),  # TLS 1.3 tells of a failed handshake with the first read
    (OSError, "reset"),
    (http.client.HTTPException, "protocol"),
)


class PostFailed(Exception):
    """No whole answer head arrived; `error` is the class of the fault, to keep with the attempt."""

    def __init__(self, error: str) -> None:
        super().__init__(error)
        self.error = error


class PostRequest(requests.PreparedRequest):
    """A request made ready with its route: requests' own preparing would parse the URL once more."""

    def __init__(self, route: Route, *, body: bytes, headers: Mapping[str, str]) -> None:
        super().__init__()
        self.method, self.url = "POST", route.target.url
        self.content = self.body = body
        self.headers = CaseInsensitiveDict({**headers, "Accept-Encoding": "identity"})
        self.route = route
        self.peer: Address | None = None


class WebhookSession(requests.Session):
    """A session that takes nothing from the environment and follows nothing."""

    def __init__(self, adapter: BaseAdapter) -> None:
        super().__init__()
        self.trust_env = False
        self.mount("https://", adapter)
        self.mount("http://", adapter)

    def get_redirect_target(self, _resp: requests.Response) -> str | None:
        """None: with redirects off requests would still parse the Location, whatever it holds."""
        return None


class WebhookAdapter(BaseAdapter):
    """Sends a Post, on an idle connection where one leads to an address just judged."""

    def __init__(self) -> None:
        super().__init__()
        self._idle = ConnectionPool()
        self._watchdog = Watchdog()

    def send(self, request: requests.PreparedRequest, *_args: Any, **_kwargs: Any) -> requests.Response:
        """The answer with at most 16 KiB of its body, as sent. Raises Failure."""
        if not isinstance(request, PostRequest):
            raise TypeError("Only a Post knows where it may go.")
        reused = self._idle.take(request.route)
        if reused is not None:
            try:
                return self._exchange(reused, request)
            except PostFailed as failure:
                # Closed by the other side while idle: this post was never seen, so ask again at once.
                if failure.error != "reset" or reused.was_answered:
                    raise
        return self._exchange(_connected(request), request)

    def close(self) -> None:
        """Close what is idle."""
        self._idle.clear()

    def _exchange(self, connection: Connection, post: PostRequest) -> requests.Response:
        post.peer = connection.peer
        with self._watchdog.watch(connection.sock, post.route.answer_by):
            reply = _send_and_read_head(connection, post)
            body, reusable = read_body(reply)
        reply.close()
        if reusable:
            self._idle.put(connection)
        else:
            connection.close()
        return _response(post, reply, body)


def _connected(post: PostRequest) -> Connection:
    connection = connections.new(post.route)
    try:
        connection.connect()
    except (OSError, PeerNotAllowed) as fault:
        connection.close()
        raise PostFailed(_error_name(fault, CONNECT_ERRORS)) from fault
    finally:
        post.peer = connection.peer
    return connection


def _send_and_read_head(connection: Connection, post: PostRequest) -> http.client.HTTPResponse:
    try:
        return connection.exchange(post.route, body=post.content, headers=post.headers)
    except (OSError, http.client.HTTPException) as fault:
        connection.close()
        # Whatever else it looks like: the watchdog may have cut it off.
        is_late = post.route.answer_by.is_past
        raise PostFailed("timeout" if is_late else _error_name(fault, EXCHANGE_ERRORS)) from fault


def _error_name(fault: Exception, faults: ErrorNames) -> str:
    return next(name for kind, name in faults if isinstance(fault, kind))


def _response(post: PostRequest, reply: http.client.HTTPResponse, body: bytes) -> requests.Response:
    response = requests.Response()
    response.status_code, response.reason = reply.status, reply.reason
    response.headers = CaseInsensitiveDict(reply.headers.items())
    response.url, response.request = post.route.target.url, post
    response.raw = io.BytesIO(body)
    return response
