"""Read an untrusted response in bounded time and size: it may be endless, slow, broken or compressed."""

import contextlib
import http.client
import io
import socket
from typing import Any

from core.deadlines import Deadline

MAX_HEAD_BYTES = 64 * 1024
MAX_BODY_BYTES = 16 * 1024


class ResponseSocket:
    """The socket that http.client reads a response from. It counts the bytes."""

    def __init__(self, sock: socket.socket, deadline: Deadline) -> None:
        self._sock, self._deadline = sock, deadline
        self.received = 0

    def makefile(self, _mode: str) -> "_HeadReader":
        """Make the stream to read from, binary in any mode."""
        return _HeadReader(_DeadlineReader(self, self._sock, self._deadline))


class _DeadlineReader(io.RawIOBase):
    """Limits each read to the time that is left, so that slow single bytes cannot exceed the deadline."""

    def __init__(self, incoming: ResponseSocket, sock: socket.socket, deadline: Deadline) -> None:
        self._incoming, self._sock, self._deadline = incoming, sock, deadline
        self._raw = sock.makefile("rb", buffering=0)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        self._sock.settimeout(self._deadline.left())
        count = self._raw.readinto(buffer)
        self._incoming.received += count or 0
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


class _HeadReader(io.BufferedReader):
    """A stream whose lines must be complete and in total at most MAX_HEAD_BYTES.

    http.client treats the end of the stream as the end of the headers, so half a head would be a valid 200.
    """

    _left = MAX_HEAD_BYTES

    def readline(self, _size: int | None = -1) -> bytes:
        at_start = self._left == MAX_HEAD_BYTES
        line = super().readline(self._left)
        self._left -= len(line)
        # http.client itself handles a stream that ends before the first byte.
        if not line.endswith(b"\n") and (line or not at_start):
            raise http.client.IncompleteRead(line)
        return line


def read_body(reply: http.client.HTTPResponse) -> tuple[bytes, bool]:
    """Return the body up to MAX_BODY_BYTES, and whether it is complete and the connection stays open."""
    body = bytearray()
    with contextlib.suppress(OSError, http.client.HTTPException):
        while len(body) < MAX_BODY_BYTES:
            part = reply.read1(MAX_BODY_BYTES - len(body))
            if not part:
                return bytes(body), not reply.will_close and not reply.length
            body += part
    return bytes(body), False
