"""HTTP by hand, for what no client library would send."""

import json
import socket
from dataclasses import dataclass
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
    """A connection on which `sent` has been sent."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=60)
    connection.sendall(sent)
    return connection


def reply(connection: socket.socket) -> Reply:
    """What comes until the server closes."""
    with connection:
        received = b"".join(iter(lambda: connection.recv(65_536), b""))
    head, _, body = received.partition(b"\r\n\r\n")
    first, *lines = head.decode("latin-1").split("\r\n")
    return Reply(int(first.split(" ")[1]), dict(line.split(": ", 1) for line in lines), body)


def ask(port: int, start: bytes, headers: bytes = b"", body: bytes = b"") -> Reply:
    """One request on a connection of its own."""
    return reply(opened(port, start + HEAD + CLOSE + headers + b"\r\n" + body))
