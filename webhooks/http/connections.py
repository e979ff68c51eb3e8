"""Connections to judged addresses only; the name in the URL stays the one on the certificate."""

import contextlib
import http.client
import socket
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from typing import Any

from urllib3.connection import HTTPConnection, HTTPSConnection

from core.deadlines import Deadline
from webhooks.http.public_networks import Address, unwrap
from webhooks.http.response_reader import ResponseSocket
from webhooks.http.url_check import Target

# A name with many dead addresses may not use up the time for one.
MAX_DIALS = 4
# One TLS record: what a single send may take is then bounded by one timeout.
SEND_CHUNK_BYTES = 16 * 1024


class PeerNotAllowed(Exception):
    """The socket came out at an address that may not be reached."""


@dataclass(frozen=True)
class Route:
    """For whom a post is and where it goes, by when, and which peers it may meet."""

    merchant_id: str
    target: Target
    addresses: tuple[Address, ...]
    is_allowed: Callable[[Address], bool]
    tls: ssl.SSLContext
    connect_by: Deadline
    answer_by: Deadline


class Connection(HTTPConnection):
    """A urllib3 connection that dials the addresses of its route and waits no longer than it says."""

    route: Route
    peer: Address | None = None
    incoming: ResponseSocket | None = None
    idle_since = 0.0
    _unsent = b""

    def exchange(self, route: Route, *, body: bytes, headers: Mapping[str, str]) -> http.client.HTTPResponse:
        """Send a post and read the head of the answer. Raises OSError and HTTPException."""
        self.route, self.incoming = route, None
        self.timeout = route.answer_by.left()
        self.request("POST", route.target.path_and_query, body=body, headers=headers)
        # Who refuses a post early may close before reading it all; the answer is still to be had.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self._flush()
        # Not urllib3's, which logs every malformed header: a receiver must not fill our log.
        return http.client.HTTPConnection.getresponse(self)

    @property
    def was_answered(self) -> bool:
        """True when at least one byte came back since the last post was sent."""
        return self.incoming is not None and self.incoming.received > 0

    def send(self, data: Any) -> None:
        """Called by http.client for the head and for the body; gathered, they go out as one packet."""
        self._unsent += data

    def _flush(self) -> None:
        """Send by the deadline: each piece gets what is left of it."""
        data, self._unsent = self._unsent, b""
        for start in range(0, len(data), SEND_CHUNK_BYTES):
            self.sock.settimeout(self.route.answer_by.left())
            super().send(data[start : start + SEND_CHUNK_BYTES])

    def response_class(self, sock: socket.socket, method: str) -> http.client.HTTPResponse:  # type: ignore[override]
        """Called by http.client to make its response."""
        self.incoming = ResponseSocket(sock, self.route.answer_by)
        return http.client.HTTPResponse(self.incoming, method=method)  # type: ignore[arg-type]

    def _new_conn(self) -> socket.socket:
        fault: OSError = ConnectionRefusedError()
        candidates = self.route.addresses[:MAX_DIALS]
        for tried, address in enumerate(candidates):
            try:
                return self._dial(address, self.route.connect_by.left() / (len(candidates) - tried))
            except OSError as latest:
                fault = latest
        raise fault

    def _dial(self, address: Address, seconds: float) -> socket.socket:
        family = socket.AF_INET if address.version == 4 else socket.AF_INET6
        with contextlib.ExitStack() as closing_on_failure:
            sock = closing_on_failure.enter_context(socket.socket(family, socket.SOCK_STREAM))
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.settimeout(seconds)
            sock.connect((str(address), self.route.target.port))
            self._check_peer(unwrap(ip_address(sock.getpeername()[0])))
            sock.settimeout(self.route.connect_by.left())
            closing_on_failure.pop_all()
        return sock

    def _check_peer(self, peer: Address) -> None:
        self.peer = peer
        if not self.route.is_allowed(peer):
            raise PeerNotAllowed(str(peer))


class SecureConnection(Connection, HTTPSConnection):
    """The same with TLS."""


def new(route: Route) -> Connection:
    """A connection for this route, not dialled yet."""
    host, port = route.target.host, route.target.port
    if route.target.scheme == "https":
        connection: Connection = SecureConnection(host, port, ssl_context=route.tls)
    else:
        connection = Connection(host, port)
    connection.route = route
    return connection
