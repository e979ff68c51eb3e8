"""Read an untrusted response in bounded size: it may be endless, broken or compressed.

Time is bounded by the caller. Only the status decides about a post, so the head is read leniently. Anything
unusual in head or body means that the connection is not used again.
"""

import asyncio
import re
from dataclasses import dataclass, field

# Of one response, with interim responses and all that is around chunks. Nothing is read after it.
MAX_RESPONSE_BYTES = 64 * 1024
MAX_BODY_BYTES = 16 * 1024
STATUS_LINE = re.compile(rb"HTTP/1\.([0-9]) ([1-9][0-9]{2})(?: .*)?")
CHUNK_SIZE = re.compile(rb"([0-9a-fA-F]{1,8})[ \t]*(?:;.*)?")
SWITCHING_PROTOCOLS = 101
WITHOUT_BODY = frozenset({204, 304})


class ProtocolError(Exception):
    """The response is not HTTP/1, or its head is too long or incomplete."""


class BodyIncomplete(Exception):
    """The body ended early, or its form is invalid."""


@dataclass(slots=True)
class Response:
    """A response: `status` is set when the head is complete, and `body` grows up to MAX_BODY_BYTES."""

    status: int | None = None
    retry_after: str | None = None
    body: bytearray = field(default_factory=bytearray)
    is_reusable: bool = False


class ResponseReader(asyncio.Protocol):
    """The incoming side of a connection. Bytes that arrived before an error or the end can still be read."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._received = 0
        self._ended = False
        self._error: OSError | None = None
        self._arrival: asyncio.Future[None] | None = None

    @property
    def was_answered(self) -> bool:
        """Whether at least one byte arrived since the last post was sent."""
        return self._received > 0

    @property
    def is_quiet(self) -> bool:
        """Whether the connection is open and has no byte that nobody asked for."""
        return not self._ended and not self._buffer

    def begin(self) -> None:
        """Expect a new response."""
        self._received = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Called by the event loop."""
        self.transport = transport  # type: ignore[assignment]  # that of uvloop has no common class

    def data_received(self, data: bytes) -> None:
        """Called by the event loop."""
        self._received += len(data)
        self._buffer += data
        if self._received > MAX_RESPONSE_BYTES:
            del self._buffer[MAX_RESPONSE_BYTES:]
            self.transport.pause_reading()
            self._ended = True
        self._wake()

    def eof_received(self) -> None:
        """Called by the event loop."""
        self._ended = True
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """Called by the event loop."""
        self._ended, self._error = True, exc if isinstance(exc, OSError) else None
        self._wake()

    async def read(self, response: Response) -> None:
        """Read into `response`. Without a complete head, raises OSError and ProtocolError."""
        version, headers = await self._read_head(response)
        try:
            is_delimited = await self._read_body(response, headers)
        except (OSError, BodyIncomplete):
            return
        tokens = b",".join(headers.get(b"connection", [])).lower()
        response.is_reusable = is_delimited and version == b"1" and b"close" not in tokens and self.is_quiet

    async def _read_head(self, response: Response) -> tuple[bytes, dict[bytes, list[bytes]]]:
        """Return the minor version and the headers. Skips interim responses."""
        while True:
            match = STATUS_LINE.fullmatch(await self._head_line())
            if match is None:
                raise ProtocolError
            headers: dict[bytes, list[bytes]] = {}
            while line := await self._head_line():
                name, _, value = line.partition(b":")
                headers.setdefault(name.strip().lower(), []).append(value.strip())
            status = int(match[2])
            if status >= 200 or status == SWITCHING_PROTOCOLS:
                response.status = status
                response.retry_after = headers.get(b"retry-after", [b""])[0].decode("latin-1") or None
                return match[1], headers

    async def _read_body(self, response: Response, headers: dict[bytes, list[bytes]]) -> bool:
        """Read up to MAX_BODY_BYTES. Return whether the end of the body was announced and reached."""
        coding, lengths = headers.get(b"transfer-encoding"), headers.get(b"content-length", [])
        if response.status in WITHOUT_BODY:
            return True
        if coding is not None and [each.lower() for each in coding] == [b"chunked"]:
            return await self._read_chunks(response.body) and not lengths
        if coding is None and len(lengths) == 1 and lengths[0].isdigit() and len(lengths[0]) < 20:
            return await self._copy(int(lengths[0]), response.body)
        await self._copy(MAX_BODY_BYTES, response.body)
        return False

    async def _read_chunks(self, body: bytearray) -> bool:
        while True:
            match = CHUNK_SIZE.fullmatch(await self._line())
            if match is None:
                raise BodyIncomplete
            size = int(match[1], 16)
            if size == 0:
                while await self._line():
                    pass  # trailers
                return True
            if not await self._copy(size, body):
                return False
            if await self._line():
                raise BodyIncomplete

    async def _copy(self, count: int, body: bytearray) -> bool:
        """Add `count` bytes to `body`. Return False as soon as it is full."""
        while count > 0:
            await self._wait_for_more_than(0)
            part = self._buffer[: min(count, MAX_BODY_BYTES - len(body))]
            del self._buffer[: len(part)]
            body += part
            count -= len(part)
            if len(body) >= MAX_BODY_BYTES:
                return False
        return True

    async def _head_line(self) -> bytes:
        try:
            return await self._line()
        except BodyIncomplete:
            # Without a byte, the receiver has only closed the connection.
            raise (ProtocolError if self.was_answered else ConnectionResetError) from None

    async def _line(self) -> bytes:
        """Read a line without its end, which is CR LF or LF. Raises OSError and BodyIncomplete."""
        searched = 0
        while (end := self._buffer.find(b"\n", searched)) < 0:
            searched = len(self._buffer)
            await self._wait_for_more_than(searched)
        line = bytes(self._buffer[:end]).removesuffix(b"\r")
        del self._buffer[: end + 1]
        return line

    async def _wait_for_more_than(self, count: int) -> None:
        while len(self._buffer) <= count:
            if self._error is not None:
                raise self._error
            if self._ended:
                raise BodyIncomplete
            self._arrival = asyncio.get_running_loop().create_future()
            await self._arrival

    def _wake(self) -> None:
        if self._arrival is not None and not self._arrival.done():
            self._arrival.set_result(None)
