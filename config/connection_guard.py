"""Limits of a connection that Gunicorn lacks, by the public interface of asyncio's protocols alone.

- The first head must arrive in time. Gunicorn has a timer from the second one on.
- A client must read. Gunicorn waits for ever.
- A line may have MAX_LINE bytes. Gunicorn refuses longer ones only if they arrive in several pieces.
"""

import asyncio
from collections.abc import Callable
from typing import cast

HEAD_SECONDS = 10.0
# How long a client may read nothing of a response that is larger than the buffers.
UNREAD_SECONDS = 30.0
MAX_LINE = 8190
END_OF_HEAD = b"\r\n\r\n"


class ConnectionGuard(asyncio.Protocol):
    """Stands between a connection and its protocol, and passes everything on."""

    _transport: asyncio.Transport
    _timer: asyncio.TimerHandle

    def __init__(self, protocol: asyncio.Protocol, on_end: Callable[[], None]) -> None:
        self._protocol, self._on_end = protocol, on_end
        self._is_in_first_head, self._end = True, b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(HEAD_SECONDS, self._transport.abort)
        self._protocol.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        if self._is_in_first_head:
            self._end = self._end[-len(END_OF_HEAD) :] + data
            if END_OF_HEAD in self._end:
                self._is_in_first_head, self._end = False, b""
                self._timer.cancel()
        for start in range(0, len(data), MAX_LINE):
            if not self._transport.is_closing():
                self._protocol.data_received(data[start : start + MAX_LINE])

    def pause_writing(self) -> None:
        """The client does not keep up with a response."""
        self._protocol.pause_writing()
        self._await_reading(None)

    def _await_reading(self, unread: int | None) -> None:
        """End the connection if as many bytes are left as the last time."""
        left = self._transport.get_write_buffer_size()
        if left == unread:
            self._transport.abort()
        else:
            self._timer = self._loop.call_later(UNREAD_SECONDS, self._await_reading, left)

    def resume_writing(self) -> None:
        self._timer.cancel()
        self._protocol.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        self._timer.cancel()
        self._on_end()
        self._protocol.connection_lost(exc)
