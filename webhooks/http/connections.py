"""Connections to checked addresses only. The certificate must match the host name of the URL."""

import contextlib
import http.client
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

from urllib3.connection import HTTPConnection, HTTPSConnection

from core.deadlines import Deadline
from webhooks.http import url_check
from webhooks.http.public_networks import Address, unwrap
from webhooks.http.response_reader import ResponseSocket
from webhooks.http.url_check import Target, UrlPolicy

# The time to connect is divided among at most this many addresses of a name.
MAX_DIALS = 4
# One TLS record, so that each record has its own timeout.
SEND_CHUNK_BYTES = 16 * 1024


class PeerNotAllowed(Exception):
    """The socket is connected to an address that is not allowed."""


@dataclass(frozen=True)
class Route:
    """Where a post goes, on behalf of which merchant, and its deadlines. `addresses` are checked."""

    merchant_id: str
    target: Target
    policy: UrlPolicy
    addresses: tuple[Address, ...]
    tls: ssl.SSLContext
    connect_by: Deadline
    answer_by: Deadline


class Connection(HTTPConnection):
    """A urllib3 connection that dials only the addresses of its route and keeps its deadlines."""

    route: Route
    peer: Address | None = None
    incoming: ResponseSocket | None = None
    idle_since = 0.0
    _unsent = b""

    def exchange(self, route: Route, *, body: bytes, headers: Mapping[str, str]) -> http.client.HTTPResponse:
        """Send a post and read the head of the response. Raises OSError and HTTPException."""
        self.route, self.incoming = route, None
        self.timeout = route.answer_by.left()
        self.request("POST", route.target.path_and_query, body=body, headers=headers)
        # A receiver may answer and close before it has read the whole post. The response can still be read.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._flush()
        # The method of urllib3 logs malformed headers, with which a receiver could fill our log.
        return http.client.HTTPConnection.getresponse(self)

    @property
    def was_answered(self) -> bool:
        """Whether at least one byte arrived since the last post was sent."""
        return self.incoming is not None and self.incoming.received > 0

    def send(self, data: Any) -> None:
        """Collect head and body, for which http.client calls this, so that they leave as one packet."""
        self._unsent += data

    def _flush(self) -> None:
        """Send in pieces, each within the time that is left."""
        data, self._unsent = self._unsent, b""
        for start in range(0, len(data), SEND_CHUNK_BYTES):
            self.sock.settimeout(self.route.answer_by.left())
            super().send(data[start : start + SEND_CHUNK_BYTES])

    def response_class(self, sock: socket.socket, method: str) -> http.client.HTTPResponse:  # type: ignore[override]
        """Make the response for http.client."""
        self.incoming = ResponseSocket(sock, self.route.answer_by)
        return http.client.HTTPResponse(self.incoming, method=method)  # type: ignore[arg-type]

    def _new_conn(self) -> socket.socket:
        error: OSError = ConnectionRefusedError()
        candidates = self.route.addresses[:MAX_DIALS]
        for tried, address in enumerate(candidates):
            try:
                return self._dial(address, self.route.connect_by.left() / (len(candidates) - tried))
            except OSError as latest:
                error = latest
        raise error

    def _dial(self, address: Address, seconds: float) -> socket.socket:
        family = socket.AF_INET if address.version == 4 else socket.AF_INET6
        with contextlib.ExitStack() as closing_on_failure:
            sock = closing_on_failure.enter_context(socket.socket(family, socket.SOCK_STREAM))
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.settimeout(seconds)
            sock.connect((str(address), self.route.target.port))
            self.peer = unwrap(ip_address(sock.getpeername()[0]))
            if not url_check.is_allowed(self.peer, self.route.target, self.route.policy):
                raise PeerNotAllowed(str(self.peer))
            sock.settimeout(self.route.connect_by.left())
            closing_on_failure.pop_all()
        return sock


class SecureConnection(Connection, HTTPSConnection):
    """A connection with TLS."""


def new(route: Route) -> Connection:
    """Build a connection for this route. It is not connected yet."""
    host, port = route.target.host, route.target.port
    if route.target.scheme == "https":
        connection: Connection = SecureConnection(host, port, ssl_context=route.tls)
    else:
        connection = Connection(host, port)
    connection.route = route
    return connection
