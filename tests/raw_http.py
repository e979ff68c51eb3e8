"""HTTP as exact bytes over a bare socket, for requests that no client library sends."""

import json
import socket
import time
from dataclasses import dataclass, field
from typing import Any

HEAD = b" HTTP/1.1\r\nHost: localhost\r\n"
CLOSE = b"Connection: close\r\n"
HALF_BODY = b"POST /Thai/v1/qr-codes" + HEAD + b'Content-Length: 100\r\n\r\n{"amount": 1'
HALF_HEADER = b"POST /Thai/v1/qr-codes HTTP/1.1\r\nHost: local"


@dataclass(frozen=True)
class Reply:
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> dict[str, Any]:
        shown: dict[str, Any] = json.loads(self.body)
        return shown


def opened(port: int, sent: bytes) -> socket.socket:
    """Connect, send, and return the connection."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=60)
    connection.sendall(sent)
    return connection


def reply(connection: socket.socket) -> Reply:
    """The reply on a connection that the server closes after it."""
    with connection:
        received = b"".join(iter(lambda: connection.recv(65_536), b""))
    head, _, body = received.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    return Reply(int(first.split(" ")[1]), dict(line.split(": ", 1) for line in lines), body)


def ask(port: int, start: bytes, headers: bytes = b"", body: bytes = b"") -> Reply:
    """Send a request on a new connection; return the reply."""
    return reply(opened(port, start + HEAD + CLOSE + headers + b"\r\n" + body))


PATIENCE = 60.0  # the server ends a stalled request after 10 s; beyond this it hangs
QUIET = 0.2  # seconds to wait for a second reply, which would be a defect


class HungError(Exception):
    """The server neither replied nor closed the connection."""


@dataclass(frozen=True)
class RawRequest:
    """A request that is sent without any check or change."""

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
    """Send; return all replies, none if the server only closes. Raises HungError."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
        _send(connection, sent)
        return _replies(_received(connection))


def abandon(port: int, sent: bytes) -> None:
    """Send, and close the connection without waiting for a reply."""
    with socket.create_connection(("127.0.0.1", port), timeout=PATIENCE) as connection:
        _send(connection, sent)


def _send(connection: socket.socket, sent: bytes) -> None:
    try:
        connection.sendall(sent)
    except ConnectionError:
        return  # the server refused and closed; its reply can still be read


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
    """The complete replies in `received`."""
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
