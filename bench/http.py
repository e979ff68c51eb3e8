"""A minimal HTTP/1.1 client and minimal webhook endpoints, in one event loop of this process.

The tables show their processor time as `client us`, because all share the processors.
"""

import asyncio
import json
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, cast

import uvloop

HOST = "127.0.0.1"
PATIENCE_SECONDS = 30.0
HEAD_END = b"\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class NotMeasurable(Exception):
    """An unexpected answer, which makes the figures useless."""


@dataclass(frozen=True)
class Request:
    """One HTTP request, with JSON if it has a body."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes = b""

    def to_bytes(self) -> bytes:
        head = [f"{self.method} {self.path} HTTP/1.1", "Host: 127.0.0.1"]
        head += [f"{name}: {value}" for name, value in self.headers.items()]
        if self.body:
            head += ["Content-Type: application/json", f"Content-Length: {len(self.body)}"]
        return "\r\n".join([*head, "\r\n"]).encode() + self.body


class Stream(asyncio.Protocol):
    """A kept connection. A message comes only after the one before was answered."""

    def __init__(self) -> None:
        self._received = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._received += data
        head, end, body = self._received.partition(HEAD_END)
        if end and len(body) >= int(header(head, b"content-length") or 0):
            self._received = b""
            self.take(head, body)

    def take(self, head: bytes, body: bytes) -> None:
        raise NotImplementedError


class Connection(Stream):
    """A connection to a server."""

    def __init__(self) -> None:
        super().__init__()
        self._answer: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def ask(self, request: bytes) -> bytes:
        """Send a request; return the body of the answer. Raises NotMeasurable unless it is 200."""
        self._answer = asyncio.get_running_loop().create_future()
        self.transport.write(request)
        return await self._answer

    def take(self, head: bytes, body: bytes) -> None:
        if head[9:12] == b"200":
            self._answer.set_result(body)
        else:
            self._answer.set_exception(NotMeasurable(f"The server answered {head!r} {body!r}"))

    def connection_lost(self, error: Exception | None) -> None:
        if not self._answer.done():
            self._answer.set_exception(NotMeasurable("The server closed a kept connection."))


def ask(port: int, request: Request) -> Any:
    """The JSON of one answer. Raises NotMeasurable unless it is 200."""

    async def once() -> bytes:
        return await (await connect(port)).ask(request.to_bytes())

    return json.loads(uvloop.run(once()))


async def connect(port: int) -> Connection:
    _, connection = await asyncio.get_running_loop().create_connection(Connection, HOST, port)
    return connection


def load(
    port: int, requests: Iterator[bytes], *, connections: int, seconds: float
) -> tuple[list[float], float]:
    """Keep `connections` requests open for `seconds`; return the seconds of each, and of all.

    Raises NotMeasurable for another answer than 200.
    """
    latencies: list[float] = []

    async def repeat(connection: Connection, end: float) -> None:
        while (begin := time.perf_counter()) < end:
            await connection.ask(next(requests))
            latencies.append(time.perf_counter() - begin)

    async def run() -> float:
        opened = [await connect(port) for _ in range(connections)]
        started = time.perf_counter()
        async with asyncio.timeout(seconds + PATIENCE_SECONDS):
            await asyncio.gather(*(repeat(connection, started + seconds) for connection in opened))
        passed = time.perf_counter() - started
        for connection in opened:
            connection.transport.close()
        return passed

    return latencies, uvloop.run(run())


class Messages(Stream):
    """A connection from a sender of webhooks."""

    def __init__(self, take: Callable[[bytes, bytes], None]) -> None:
        super().__init__()
        self._take = take

    def take(self, head: bytes, body: bytes) -> None:
        self._take(head, body)
        if not self.transport.is_closing():
            self.transport.write(OK)


class Endpoint:
    """An endpoint, which answers while `runner` runs something. `take` gets a head and a body."""

    def __init__(self, take: Callable[[bytes, bytes], None]) -> None:
        self.runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
        self.url = self.runner.run(self._listen(take))

    async def _listen(self, take: Callable[[bytes, bytes], None]) -> str:
        self._server = await asyncio.get_running_loop().create_server(partial(Messages, take), HOST, 0)
        return f"http://{HOST}:{self._server.sockets[0].getsockname()[1]}/hook"


def header(head: bytes, name: bytes) -> bytes:
    """The value of a header, or nothing. name: in lower case."""
    _, found, rest = head.lower().partition(b"\r\n" + name + b":")
    if not found:
        return b""
    at = len(head) - len(rest)
    return head[at:].partition(b"\r")[0].strip()
