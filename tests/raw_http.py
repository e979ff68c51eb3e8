"""HTTP as exact bytes over a bare socket, for requests that no client library would send."""

import socket
import time
from dataclasses import dataclass, field

from tests.devstack.raw_requests import Reply

PATIENCE = 60.0  # the server ends a stalled request after 10 s; beyond this it hangs
QUIET = 0.2  # how long to listen for an answer that nobody asked for


class HungError(Exception):
    """The server neither answered nor closed."""


@dataclass(frozen=True)
class RawRequest:
    """A request whose parts go over the wire as they are."""

    method: str
    target: str
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes | None = None

    def to_bytes(self) -> bytes:
        length = {} if self.body is None else {"Content-Length": str(len(self.body))}
        headers = {"Host": "127.0.0.1", **self.headers, **length, "Connection": "close"}
        lines = [f"{self.method} {self.target} HTTP/1.1", *(f"{name}: {headers[name]}" for name in headers)]
        return "\r\n".join([*lines, "", ""]).encode() + (self.body or b"")


def exchange(port: int, sent: bytes) -> list[Reply]:
    """Every answer that comes for `sent`; none if the server just closes. Raises HungError."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
        _send(connection, sent)
        return _replies(_received(connection))


def abandon(port: int, sent: bytes) -> None:
    """Send and hang up at once, without waiting for an answer."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
        _send(connection, sent)


def _send(connection: socket.socket, sent: bytes) -> None:
    try:
        connection.sendall(sent)
    except ConnectionError:
        return  # the server has refused already; what it said can still be read


def _received(connection: socket.socket) -> bytes:
    received, deadline = b"", time.monotonic() + PATIENCE
    while True:
        connection.settimeout(QUIET if _replies(received) else max(0.01, deadline - time.monotonic()))
        try:
            chunk = connection.recv(65_536)
        except ConnectionError:
            return received
        except TimeoutError:
            if not _replies(received):
                raise HungError(received) from None
            return received
        if not chunk:
            return received
        received += chunk


def _replies(received: bytes) -> list[Reply]:
    """The complete answers in `received`."""
    found = []
    while (end := received.find(b"\r\n\r\n")) >= 0:
        first, *lines = received[:end].decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
        rest = received[end + 4 :]
        length = int(headers.get("content-length", "0"))
        if len(rest) < length:
            break
        found.append(Reply(int(first.split(" ")[1]), headers, rest[:length]))
        received = rest[length:]
    return found
