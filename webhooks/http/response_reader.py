"""Read an untrusted response in bounded size: it may be endless, broken or compressed. llhttp parses it.

Time is bounded by the caller. Only the status decides about a post, so the head is read leniently. Anything
unusual in head or body means that the connection is not used again.
"""

import asyncio
from dataclasses import dataclass, field

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

# Of one response, with interim responses and all that is around chunks. Nothing is read after it.
MAX_RESPONSE_BYTES = 64 * 1024
MAX_BODY_BYTES = 16 * 1024
SWITCHING_PROTOCOLS = 101
VERSIONS = {"1.0", "1.1"}
FRAMING = {b"content-length", b"transfer-encoding"}


class ProtocolError(Exception):
    """The response is not HTTP/1, or its head is too long, invalid or incomplete."""


@dataclass(slots=True)
class Response:
    """A response: `status` is set when the head is complete, and `body` grows up to MAX_BODY_BYTES."""

    status: int | None = None
    retry_after: str | None = None
    body: bytearray = field(default_factory=bytearray)
    is_reusable: bool = False


class ResponseReader(asyncio.Protocol):
    """The incoming side of a connection. `is_quiet`: it is open and has no byte that nobody asked for."""

    transport: asyncio.Transport
    is_quiet = True
    _end: asyncio.Future[None] | None = None
    _received = 0
    _early = b""

    @property
    def was_answered(self) -> bool:
        """Whether at least one byte arrived since the last post was sent."""
        return self._received > 0

    def begin(self, response: Response) -> asyncio.Future[None]:
        """Read what arrives from now on into `response`. The future is done when nothing more is read.

        Without a complete head it has an OSError or a ProtocolError.
        """
        self._received, self._framing, self._is_complete = 0, 0, False
        self._response, self._end = response, asyncio.get_running_loop().create_future()
        self._parser = HttpResponseParser(self)
        self._parser.set_dangerous_leniencies(
            lenient_headers=True, lenient_chunked_length=True, lenient_optional_cr_before_lf=True
        )
        if self._early:
            early, self._early = self._early, b""
            self.data_received(early)
        return self._end

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the event loop."""
        self.transport = transport  # type: ignore[assignment]  # that of uvloop has no common class

    def data_received(self, data: bytes) -> None:
        """Called by the event loop."""
        if self._end is None:  # a receiver may answer before it has read anything
            self._early += data
            if len(self._early) > MAX_RESPONSE_BYTES:
                self.transport.pause_reading()
            return
        if self._end.done():
            self.is_quiet = False
            self.transport.abort()  # the bytes belong to no post, and may have no end
            return
        part = data[: MAX_RESPONSE_BYTES - self._received]
        self._received += len(data)
        try:
            self._parser.feed_data(part)
        except (HttpParserError, HttpParserUpgrade):
            self._break_off(ProtocolError())
        if self._received > MAX_RESPONSE_BYTES or len(self._response.body) == MAX_BODY_BYTES:
            self.transport.pause_reading()
            self._break_off(ProtocolError())
        if self._is_complete and not self._end.done():
            self._response.is_reusable = self._is_kept_open and self.is_quiet
            self._end.set_result(None)

    def eof_received(self) -> None:
        """Called by the event loop."""
        # Without a byte, the receiver has only closed the connection.
        self._break_off(ProtocolError() if self.was_answered else ConnectionResetError())

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the event loop."""
        self._break_off(exc if isinstance(exc, OSError) else ConnectionResetError())

    def _break_off(self, error: Exception) -> None:
        """End the response. A complete head is an answer, whatever is wrong with its body."""
        self.is_quiet = False
        if self._end is not None and not self._end.done():
            if self._response.status is None:
                self._end.set_exception(error)
            else:
                self._end.set_result(None)

    # What the parser calls. An exception ends it with HttpParserError.

    def on_message_begin(self) -> None:
        self.is_quiet = self.is_quiet and not self._is_complete  # a second response is no answer to a post

    def on_header(self, name: bytes, value: bytes) -> None:
        name = name.lower()
        self._framing += name in FRAMING
        if name == b"retry-after" and self._response.retry_after is None:
            self._response.retry_after = value.decode("latin-1").strip() or None

    def on_headers_complete(self) -> None:
        if self._parser.get_http_version() not in VERSIONS:
            raise ProtocolError
        status = self._parser.get_status_code()
        if status >= 200 or status == SWITCHING_PROTOCOLS:
            self._response.status = status
            # Readers differ in where a body with both ends.
            self.is_quiet = self.is_quiet and self._framing <= 1 and status != SWITCHING_PROTOCOLS
        self._framing = 0

    def on_body(self, part: bytes) -> None:
        self._response.body += part[: MAX_BODY_BYTES - len(self._response.body)]

    def on_message_complete(self) -> None:
        self._is_complete = self._response.status is not None
        self._is_kept_open = self._parser.should_keep_alive()  # it forgets this afterwards
