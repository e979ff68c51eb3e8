"""HTTP/1.1 as uvicorn speaks it, with limits for the head of a request and for open connections."""

import asyncio
from functools import partial
from typing import Any, cast

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from config.asgi import BODY_HAS_ARRIVED, WITHOUT_BODY, Response, error_and_close, headers_of
from core import errors

# Open connections of a worker.
MAX_CONNECTIONS = 2048
# How long a connection may wait for the first byte of a head, and again for its end.
WAIT_SECONDS = 10.0
HEAD_BYTES = 64 * 1024


class JoinedWrites:
    """A transport that joins what is written at once: the head and the body of a response, by one send.

    uvicorn writes them one after the other. Each send takes 20 µs and wakes the client.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport, self._loop = transport, loop
        self._parts: list[bytes] = []
        self.is_closing = transport.is_closing

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)

    def write(self, data: bytes) -> None:
        if not self._parts:
            self._loop.call_soon(self._flush)
        self._parts.append(data)

    def write_now(self, data: bytes) -> None:
        self._parts.append(data)
        self._flush()

    def close(self) -> None:
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        if self._parts:
            self._transport.write(b"".join(self._parts))
            self._parts.clear()


class HttpProtocol(HttpToolsProtocol):
    """One connection. uvicorn itself limits neither the size of a head nor the time it takes.

    uvicorn starts and stops a timer for each request, which takes 10 µs. Here a connection has one timer,
    which looks how long it has been waiting.
    """

    _head_bytes = 0
    _is_in_head = False
    _waiting_since: float | None = None
    _timer: asyncio.TimerHandle | None = None
    _new_cycle: RequestResponseCycle | None = None
    """A request whose head has arrived and that has not started.

    It starts with its whole body, or at the end of `data_received`.
    """
    is_last = False
    """Whether the connection ends after the next response, because the worker stops."""

    def connection_made(self, transport: Any) -> None:
        super().connection_made(cast(asyncio.Transport, JoinedWrites(transport, self.loop)))
        if len(self.connections) > MAX_CONNECTIONS:
            self._refuse(errors.ServiceUnavailable(retry_after=2))
        else:
            self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        was_in_head = self._is_in_head
        super().data_received(data)
        if self._new_cycle is not None:  # its body comes later, so a task waits for it
            self._start_task(self._new_cycle)
        if self._is_in_head:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES:
                self._refuse(errors.InvalidRequest(reason="its head is larger than 64 kB"))
            elif not was_in_head and self._is_idle:
                self._wait()

    def on_message_begin(self) -> None:
        self._is_in_head = True
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._is_in_head, self._head_bytes, self._waiting_since = False, 0, None
        super().on_headers_complete()
        if self.is_last:
            self.cycle.keep_alive = False

    def on_message_complete(self) -> None:
        cast(dict[str, Any], self.scope)[BODY_HAS_ARRIVED] = True
        super().on_message_complete()
        if self._new_cycle is not None:
            self._answer(self._new_cycle)

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        if cycle.more_body:
            self._new_cycle = cycle
        else:  # it waited for the response before
            self._answer(cycle)

    def _answer(self, cycle: RequestResponseCycle) -> None:
        """Answer a request whose body has arrived, without a task if the application can.

        A task waits until a client reads its earlier responses, so that they do not fill the memory.
        """
        self._new_cycle = None
        respond = partial(self._respond, cycle)
        must_wait = cycle.waiting_for_100_continue or self.flow.write_paused
        if must_wait or not self.app.answer(cycle.scope, bytes(cycle.body), respond):
            self._start_task(cycle)

    def _start_task(self, cycle: RequestResponseCycle) -> None:
        self._new_cycle = None
        super()._start_asgi_task(cycle, self.app)

    def _respond(self, cycle: RequestResponseCycle, response: Response) -> None:
        """Send a whole response, as uvicorn does for the messages of ASGI."""
        if cycle.disconnected:
            return
        cycle.response_started = cycle.response_complete = True
        status, headers, body = response
        raw = headers_of(status, headers, body)
        if (b"connection", b"close") in raw:
            cycle.keep_alive = False
        elif not cycle.keep_alive:
            raw.append((b"connection", b"close"))
        lines = [b"%b: %b\r\n" % each for each in raw]
        sent = b"" if cycle.scope["method"] == "HEAD" or status in WITHOUT_BODY else body
        written = b"".join([STATUS_LINE[status], *lines, b"\r\n", sent])
        cast(JoinedWrites, self.transport).write_now(written)
        if not cycle.keep_alive:
            self.transport.close()
        cycle.on_response()

    def on_response_complete(self) -> None:
        """uvicorn's, without its timer."""
        self.server_state.total_requests += 1
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if self.pipeline:
            self._start_asgi_task(*self.pipeline.pop())
        else:
            self._wait()

    def send_400_response(self, msg: str) -> None:
        self._refuse(errors.MalformedRequest())

    @property
    def is_new(self) -> bool:
        """Whether no request has arrived yet."""
        return not self.transport.is_closing() and self.cycle is None

    @property
    def _is_idle(self) -> bool:
        """Whether no request waits for its response."""
        return self.cycle is None or self.cycle.response_complete

    def _wait(self) -> None:
        """Close the connection if no head arrives in time."""
        self._waiting_since = self.loop.time()
        if self._timer is None:
            self._timer = self.loop.call_later(WAIT_SECONDS, self._end_wait)

    def _end_wait(self) -> None:
        self._timer = None
        if self._waiting_since is None:  # a request is under way; its response starts the timer again
            return
        left = self._waiting_since + WAIT_SECONDS - self.loop.time()
        if left > 0:
            self._timer = self.loop.call_later(left, self._end_wait)
        else:
            self.transport.abort()

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
