"""HTTP/1.1 as uvicorn speaks it, with limits for the head of a request and for open connections."""

import asyncio
from typing import Any

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from config.asgi import error_and_close
from core import errors

# Open connections of a worker. Stalled ones are closed after 10 s.
MAX_CONNECTIONS = 2048
HEAD_SECONDS = 10.0
HEAD_BYTES = 64 * 1024


class HttpProtocol(HttpToolsProtocol):
    """One connection. uvicorn itself limits neither the size of a head nor the time it takes."""

    _head_bytes = 0
    _is_in_head = _is_in_body = False
    _head_timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if len(self.connections) > MAX_CONNECTIONS:
            self._refuse(errors.ServiceUnavailable(retry_after=2))
        else:
            self._head_timer = self.loop.call_later(HEAD_SECONDS, transport.abort)

    def connection_lost(self, exc: Exception | None) -> None:
        self._end_head()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_in_head:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES:
                self._refuse(errors.InvalidRequest("The head of the request is larger than 64 kB."))
        if self._head_timer is None and not self._is_in_body and self._is_idle:
            # A part of a head has arrived: the rest must follow.
            self._head_timer = self.loop.call_later(HEAD_SECONDS, self.transport.abort)

    def on_message_begin(self) -> None:
        self._is_in_head = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._end_head()
        self._is_in_head, self._is_in_body = False, True
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._is_in_body = False
        super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        self._refuse(errors.InvalidRequest("The request is not valid HTTP."))

    @property
    def _is_idle(self) -> bool:
        """Whether no request waits for its response."""
        return self.cycle is None or self.cycle.response_complete

    def _end_head(self) -> None:
        self._head_bytes = 0
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _refuse(self, error: errors.ApiError) -> None:
        """Answer before a request reaches the application, and close."""
        if self.transport.is_closing():
            return
        cycle = self.cycle
        # A request whose body is complete may be at work: an error would look like its answer.
        if self._is_idle or (cycle.more_body and not cycle.response_started):
            status, headers, body = error_and_close(error)
            lines = [f"{name.lower()}: {value}\r\n".encode("latin-1") for name, value in headers]
            self.transport.write(b"".join([STATUS_LINE[status], *lines, b"\r\n", body]))
        self.transport.close()
