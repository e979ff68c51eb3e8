"""HTTP/1.1 as uvicorn speaks it, with limits for the head of a request and for open connections."""

import asyncio
from typing import Any, cast

import httptools
from uvicorn._types import ASGISendEvent, HTTPScope
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from config.asgi import BODY_HAS_ARRIVED, WITHOUT_BODY, error_and_close
from core import errors

# Open connections of a worker.
MAX_CONNECTIONS = 2048
# How long a connection may wait for the first byte of a head, and again for its end.
WAIT_SECONDS = 10.0
HEAD_BYTES = 64 * 1024
CLOSE = (b"connection", b"close")


class Exchange(RequestResponseCycle):
    """One request and its response, which is complete and leaves by one write.

    uvicorn checks each header by two patterns, and writes the head and the body one after the other. Each
    write takes 20 µs and wakes the client.
    """

    _start: ASGISendEvent

    async def send(self, message: ASGISendEvent) -> None:
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        if message["type"] == "http.response.start":
            self._start = message
        else:
            self._respond(cast(dict[str, Any], self._start), cast(dict[str, Any], message)["body"])

    def _respond(self, start: dict[str, Any], body: bytes) -> None:
        headers = [*self.default_headers, *start["headers"]]
        if CLOSE in headers:
            self.keep_alive = False
        elif not self.keep_alive:
            headers.append(CLOSE)
        lines = [STATUS_LINE[start["status"]], *(b"%b: %b\r\n" % header for header in headers), b"\r\n"]
        head = b"".join(lines)
        if not head.count(b"\n") == head.count(b"\r") == len(lines):
            raise RuntimeError("A header has a line break.")
        self.response_started, self.waiting_for_100_continue = True, False
        has_body = self.scope["method"] != "HEAD" and start["status"] not in WITHOUT_BODY
        self.transport.write(head + body if has_body else head)
        self.response_complete = True
        self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()


class HttpProtocol(HttpToolsProtocol):
    """One connection. uvicorn itself limits neither the size of a head nor the time it takes.

    uvicorn starts and stops a timer for each request, which takes 10 µs. Here a connection has one timer,
    which looks how long it has been waiting.
    """

    _head_bytes = 0
    _is_in_head = False
    _waiting_since: float | None = None
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
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
        if self._is_in_head:
            self._head_bytes += len(data)
            if self._head_bytes > HEAD_BYTES:
                self._refuse(errors.InvalidRequest(reason="its head is larger than 64 kB"))
            elif not was_in_head and self._is_idle:
                self._wait()

    def on_message_begin(self) -> None:
        self._is_in_head = True
        self.url, self.headers, self.expect_100_continue = b"", [], False

    def on_headers_complete(self) -> None:
        """uvicorn's, with what `config.asgi` reads of a scope. An error here is answered with 400."""
        self._is_in_head, self._head_bytes, self._waiting_since = False, 0, None
        url, http_version = httptools.parse_url(self.url), self.parser.get_http_version()
        url.path.decode("ascii")
        self.scope = cast(
            HTTPScope,
            {
                "type": "http",
                "http_version": http_version,
                "method": self.parser.get_method().decode("ascii"),
                "scheme": self.scheme,
                "raw_path": url.path,
                "query_string": url.query or b"",
                "headers": self.headers,
                "server": self.server,
                "client": self.client,
            },
        )
        previous, self.cycle = self.cycle, self._new_exchange(http_version)
        if previous is None or previous.response_complete:
            self._start_asgi_task(self.cycle, self.app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((self.cycle, self.app))

    def _new_exchange(self, http_version: str) -> Exchange:
        return Exchange(
            scope=self.scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=False,
            default_headers=self.server_state.default_headers,
            message_event=asyncio.Event(),
            expect_100_continue=self.expect_100_continue,
            keep_alive=http_version != "1.0" and self.parser.should_keep_alive(),
            on_response=self.on_response_complete,
        )

    def on_message_complete(self) -> None:
        cast(dict[str, Any], self.scope)[BODY_HAS_ARRIVED] = True
        super().on_message_complete()

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
