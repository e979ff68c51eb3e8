"""Reading an answer that may be endless, dripping, broken or a bomb: bounded in time and in size."""

import contextlib
import http.client
import io
import socket
from typing import Any

from core.deadlines import Deadline

MAX_HEAD_BYTES = 64 * 1024
MAX_BODY_BYTES = 16 * 1024


class ResponseSocket:
    """What a peer sends, in the form that http.client reads: a socket that can make a file."""

    def __init__(self, sock: socket.socket, deadline: Deadline) -> None:
        self._sock, self._deadline = sock, deadline
        self.received = 0

    def makefile(self, _mode: str) -> "_HeadReader":
        """The stream to read from, binary whatever the mode."""
        return _HeadReader(_DeadlineReader(self, self._sock, self._deadline))


class _DeadlineReader(io.RawIOBase):
    """Reads that each wait for what is left of the deadline, so that drips cannot add up beyond it."""

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
    """Lines that must be whole, and together no longer than a head may be.

    http.client takes the end of the stream for the end of the headers: half a head would be a 200.
    """

    _left = MAX_HEAD_BYTES

    def readline(self, _size: int | None = -1) -> bytes:
        at_start = self._left == MAX_HEAD_BYTES
        line = super().readline(self._left)
        self._left -= len(line)
        # Nothing at all is left to http.client, which tells it apart from a broken answer.
        if not line.endswith(b"\n") and (line or not at_start):
            raise http.client.IncompleteRead(line)
        return line


def read_body(reply: http.client.HTTPResponse) -> tuple[bytes, bool]:
    """The body up to the limit, as sent, and whether that is all of it and the connection stays open."""
    body = bytearray()
    with contextlib.suppress(OSError, http.client.HTTPException):
        while len(body) < MAX_BODY_BYTES:
            part = reply.read1(MAX_BODY_BYTES - len(body))
            if not part:
                return bytes(body), not reply.will_close and not reply.length
            body += part
    return bytes(body), False
