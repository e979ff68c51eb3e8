"""Connections to checked addresses only. The certificate must match the host name of the URL."""

import asyncio
import socket
import ssl
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from ipaddress import ip_address

from urllib3.util import wait_for_read

from core.deadlines import Deadline
from webhooks.http import url_check
from webhooks.http.public_networks import Address, unwrap
from webhooks.http.response_reader import Response, ResponseReader
from webhooks.http.url_check import Target, UrlPolicy

# The time to connect is divided among at most this many addresses of a name.
MAX_DIALS = 4


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


class Connection(ResponseReader):
    """A connection that dials only the addresses of its route."""

    idle_since = 0.0
    peer: Address | None = None

    def __init__(self, route: Route) -> None:
        self.route = route

    async def connect(self) -> None:
        """Connect within the deadline of the route. Raises OSError and PeerNotAllowed."""
        loop, target = asyncio.get_running_loop(), self.route.target
        is_secure = target.scheme == "https"
        with ExitStack() as closing_on_failure:
            sock = closing_on_failure.enter_context(await self._dial_one())
            async with asyncio.timeout(self.route.connect_by.left()):
                await loop.create_connection(
                    lambda: self,
                    sock=sock,
                    ssl=self.route.tls if is_secure else None,
                    server_hostname=target.host if is_secure else None,
                )
            closing_on_failure.pop_all()

    async def exchange(self, *, body: bytes, headers: Mapping[str, str], response: Response) -> None:
        """Send a post and read its response. Raises OSError and ProtocolError without a complete head."""
        end = self.begin(response)
        # Head and body leave together. The receiver may answer before it has read all.
        self.transport.write(_request_head(self.route.target, len(body), headers) + body)
        await end

    @property
    def is_open_and_quiet(self) -> bool:
        """Whether an idle connection is still open, and the receiver sent nothing that nobody asked for."""
        is_open = self.is_quiet and not self.transport.is_closing()
        return is_open and not wait_for_read(self.transport.get_extra_info("socket"), timeout=0)

    def close(self) -> None:
        """Close at once, whatever is under way."""
        self.transport.abort()

    async def _dial_one(self) -> socket.socket:
        error: OSError = ConnectionRefusedError()
        candidates = self.route.addresses[:MAX_DIALS]
        for tried, address in enumerate(candidates):
            try:
                async with asyncio.timeout(self.route.connect_by.left() / (len(candidates) - tried)):
                    return await self._dial(address)
            except OSError as latest:
                error = latest
        raise error

    async def _dial(self, address: Address) -> socket.socket:
        family = socket.AF_INET if address.version == 4 else socket.AF_INET6
        with ExitStack() as closing_on_failure:
            sock = closing_on_failure.enter_context(socket.socket(family, socket.SOCK_STREAM))
            sock.setblocking(False)
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await asyncio.get_running_loop().sock_connect(sock, (str(address), self.route.target.port))
            self.peer = unwrap(ip_address(sock.getpeername()[0]))
            if not url_check.is_allowed(self.peer, self.route.target, self.route.policy):
                raise PeerNotAllowed(str(self.peer))
            closing_on_failure.pop_all()
        return sock


def _request_head(target: Target, length: int, headers: Mapping[str, str]) -> bytes:
    lines = [
        f"POST {target.path_and_query} HTTP/1.1",
        f"Host: {target.host_and_port}",
        "Accept-Encoding: identity",
        f"Content-Length: {length}",
        *(f"{name}: {value}" for name, value in headers.items()),
    ]
    # A line break would begin another header or another request. The check of the URL refuses it, too.
    if not all(map(str.isprintable, lines)) or " " in target.path_and_query:
        raise ValueError("The head of a post has a character that is not allowed.")
    return "\r\n".join([*lines, "", ""]).encode("ascii")
