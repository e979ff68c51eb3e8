"""Connections to checked addresses only, and the untrusted responses on them in bounded size.

A response may be endless, broken or compressed. llhttp parses it. The caller limits the time. Only the status
decides about a post, so the head is read leniently. After anything unusual in head or body the connection is
not used again.
"""

import asyncio
import socket
import ssl
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from ipaddress import ip_address

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser
from urllib3.util import wait_for_read

from core.deadlines import Deadline
from webhooks.http import url_check
from webhooks.http.public_networks import Address, unwrap
from webhooks.http.url_check import Target, UrlPolicy

# The time to connect is divided among at most this many addresses of a name.
MAX_DIALS = 4
# Of one response, with interim responses and all that is around chunks. Nothing is read after it.
MAX_RESPONSE_BYTES = 64 * 1024
MAX_BODY_BYTES = 16 * 1024
SWITCHING_PROTOCOLS = 101
VERSIONS = {"1.0", "1.1"}
FRAMING = {b"content-length", b"transfer-encoding"}
MAX_IDLE = 256
MAX_IDLE_PER_MERCHANT = 32  # the idle connections of one merchant cannot push out those of others
MAX_IDLE_SECONDS = 60.0


class PeerNotAllowed(Exception):
    """The socket is connected to an address that is not allowed."""


class ProtocolError(Exception):
    """The response is not HTTP/1, or its head is too long, invalid or incomplete."""


@dataclass(frozen=True, slots=True)
class Route:
    """Where posts go, and on behalf of which merchant. Only posts with the same route share a connection."""

    merchant_id: str
    origin: tuple[str, str, int]
    tls: ssl.SSLContext


@dataclass(slots=True)
class Response:
    """A response with a complete head, which has a `status`, or with a `failure`."""

    status: int | None = None
    retry_after: str | None = None
    body: bytearray = field(default_factory=bytearray)  # up to MAX_BODY_BYTES
    failure: Exception | None = None  # OSError or ProtocolError
    is_begun: bool = False  # at least one byte arrived


class Connection(asyncio.Protocol):
    """A connection for one post at a time. `is_quiet`: it is open and has no byte that nobody asked for."""

    transport: asyncio.Transport
    peer: Address | None = None
    idle_since = 0.0
    is_quiet = True

    def __init__(self, route: Route) -> None:
        self.route = route
        self._expect_response()  # a receiver may answer before it has read anything

    async def connect(
        self, addresses: Sequence[Address], target: Target, policy: UrlPolicy, deadline: Deadline
    ) -> None:
        """Dial the addresses, which are checked, until one answers. Raises OSError and PeerNotAllowed."""
        is_secure = target.scheme == "https"
        with ExitStack() as closing_on_failure:
            sock = closing_on_failure.enter_context(
                await self._dial(addresses[:MAX_DIALS], target, policy, deadline)
            )
            async with asyncio.timeout(deadline.left()):
                await asyncio.get_running_loop().create_connection(
                    lambda: self,
                    sock=sock,
                    ssl=self.route.tls if is_secure else None,
                    server_hostname=target.host if is_secure else None,
                )
            closing_on_failure.pop_all()

    async def exchange(self, message: bytes, deadline: Deadline) -> Response:
        """Send a post and read its response. Afterwards the connection is idle or closed."""
        response, is_reusable = self._response, False
        try:
            async with asyncio.timeout(deadline.left()):
                self.transport.write(message)
                await self._end
            is_reusable = self._is_kept_open and self.is_quiet
        except TimeoutError as late:
            response.failure = late if response.status is None else None
        finally:
            if not is_reusable:
                self.transport.abort()
        if is_reusable:
            IDLE_CONNECTIONS.put(self)
        return response

    def reopen(self) -> bool:
        """Prepare an idle connection for a post. False if it is closed or has bytes that nobody asked for."""
        self._expect_response()
        is_open = self.is_quiet and not self.transport.is_closing()
        return is_open and not wait_for_read(self.transport.get_extra_info("socket"), timeout=0)

    async def _dial(
        self, addresses: Sequence[Address], target: Target, policy: UrlPolicy, deadline: Deadline
    ) -> socket.socket:
        error: OSError = ConnectionRefusedError()
        for tried, address in enumerate(addresses):
            family = socket.AF_INET if address.version == 4 else socket.AF_INET6
            with ExitStack() as closing_on_failure:
                try:
                    # A host without IPv6 refuses such a socket.
                    sock = closing_on_failure.enter_context(socket.socket(family, socket.SOCK_STREAM))
                    sock.setblocking(False)
                    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    async with asyncio.timeout(deadline.left() / (len(addresses) - tried)):
                        await asyncio.get_running_loop().sock_connect(sock, (str(address), target.port))
                    self.peer = unwrap(ip_address(sock.getpeername()[0]))
                except OSError as latest:
                    error = latest
                    continue
                if not url_check.is_allowed(self.peer, target, policy):
                    raise PeerNotAllowed(str(self.peer))
                closing_on_failure.pop_all()
                return sock
        raise error

    def _expect_response(self) -> None:
        self._received, self._framing, self._is_complete, self._is_kept_open = 0, 0, False, False
        self._response, self._end = Response(), asyncio.get_running_loop().create_future()
        self._parser = HttpResponseParser(self)
        self._parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_chunked_length=True, lenient_optional_cr_before_lf=True
        )

    def _break_off(self, error: Exception) -> None:
        """End the response. A complete head is an answer, whatever is wrong with its body."""
        self.is_quiet = False
        if not self._end.done():
            if self._response.status is None:
                self._response.failure = error
            self._end.set_result(None)

    # What the event loop calls.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]  # that of uvloop has no common class

    def data_received(self, data: bytes) -> None:
        if self._end.done():
            self.is_quiet = False
            self.transport.abort()  # the bytes belong to no post, and may have no end
            return
        part = data[: MAX_RESPONSE_BYTES - self._received]
        self._received += len(data)
        self._response.is_begun = True
        try:
            self._parser.feed_data(part)
        except (HttpParserError, HttpParserUpgrade):
            self._break_off(ProtocolError())
        if self._received > MAX_RESPONSE_BYTES or len(self._response.body) == MAX_BODY_BYTES:
            self.transport.pause_reading()
            self._break_off(ProtocolError())
        if self._is_complete and not self._end.done():
            self._end.set_result(None)

    def eof_received(self) -> None:
        # Without a byte, the receiver has only closed the connection.
        self._break_off(ProtocolError() if self._response.is_begun else ConnectionResetError())

    def connection_lost(self, exc: Exception | None) -> None:
        self._break_off(exc if isinstance(exc, OSError) else ConnectionResetError())

    # What the parser calls. An exception ends it with HttpParserError.

    def on_message_begin(self) -> None:
        self.is_quiet = self.is_quiet and not self._is_complete  # a second response is no answer to a post

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        self._framing += name in FRAMING
        if name == b"retry-after" and self._response.retry_after is None:
            self._response.retry_after = value.decode("latin-1").strip() or None

    def on_headers_complete(self) -> None:
        if self._parser.get_http_version() not in VERSIONS:
            raise ProtocolError
        status = self._parser.get_status_code()
        if status >= 200 or status == SWITCHING_PROTOCOLS:
            self._response.status = status
            # Readers differ in where a body with both ends.
            self.is_quiet = self.is_quiet and self._framing <= 1 and status != SWITCHING_PROTOCOLS
        self._framing = 0

    def on_body(self, part: bytes) -> None:
        self._response.body += part[: MAX_BODY_BYTES - len(self._response.body)]

    def on_message_complete(self) -> None:
        self._is_complete = self._response.status is not None
        self._is_kept_open = self._parser.should_keep_alive()  # it forgets this afterwards


class ConnectionPool:
    """Idle connections for later posts, the oldest first. Used by the event loop only.

    It needs no lock: nothing here awaits, so no other task of the loop runs in between.
    """

    def __init__(self) -> None:
        self._idle: list[Connection] = []

    def take(self, route: Route, addresses: Sequence[Address]) -> Connection | None:
        """Take an open connection of this route whose peer is among the checked addresses."""
        self._drop_stale()
        for connection in reversed(self._idle):
            if connection.route == route and connection.peer in addresses:
                self._idle.remove(connection)
                if connection.reopen():
                    return connection
                connection.transport.abort()
        return None

    def put(self, connection: Connection) -> None:
        """Keep a connection whose last response was read completely."""
        connection.idle_since = time.monotonic()
        self._idle.append(connection)
        own = [each for each in self._idle if each.route.merchant_id == connection.route.merchant_id]
        if len(own) > MAX_IDLE_PER_MERCHANT:
            self._idle.remove(own[0])
            own[0].transport.abort()
        self._drop_stale()

    def _drop_stale(self) -> None:
        since = time.monotonic() - MAX_IDLE_SECONDS
        while self._idle and (len(self._idle) > MAX_IDLE or self._idle[0].idle_since < since):
            self._idle.pop(0).transport.abort()


IDLE_CONNECTIONS = ConnectionPool()
