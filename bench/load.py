"""A minimal HTTP/1.1 client.

It has one thread, keeps its connections, and sends prepared requests. A request takes it about 30
microseconds of processor time. The table shows this, because client and server share the processors.
"""

import selectors
import socket
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

TIMEOUT = 30.0
HEAD_END = b"\r\n\r\n"
LENGTH = b"content-length:"


class NotMeasurable(Exception):
    """An unexpected answer, which makes the figures useless."""


@dataclass
class LoadResult:
    """The answers of one round."""

    statuses: Counter[int] = field(default_factory=Counter)
    latencies: list[float] = field(default_factory=list)
    seconds: float = 0.0
    client_seconds: float = 0.0
    first_refusal: bytes = b""

    @property
    def rate(self) -> float:
        """Answers a second."""
        return len(self.latencies) / self.seconds

    def quantile(self, share: float) -> float:
        """The quantile of the latencies in milliseconds."""
        ordered = sorted(self.latencies)
        return 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))]


class Connection:
    """A kept connection with at most one open request."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), TIMEOUT)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.received = b""
        self.sent_at = 0.0

    def ask(self, request: bytes) -> None:
        self.received = b""
        self.sent_at = time.perf_counter()
        self.socket.sendall(request)

    def take(self) -> bytes | None:
        """The answer if it is complete, else None. Raises ConnectionError if the server closes."""
        chunk = self.socket.recv(65_536)
        if not chunk:
            raise ConnectionError("The server closed a kept connection.")
        self.received += chunk
        return self.received if is_whole(self.received) else None


def is_whole(received: bytes) -> bool:
    end = received.find(HEAD_END)
    if end < 0:
        return False
    at = received[:end].lower().find(LENGTH)
    length = int(received[at + len(LENGTH) : received.find(b"\r", at)]) if at >= 0 else 0
    return len(received) >= end + len(HEAD_END) + length


def run(port: int, requests: Iterator[bytes], *, connections: int, seconds: float) -> LoadResult:
    """Keep `connections` requests open for `seconds`; send the next request after each answer."""
    outcome, selector = LoadResult(), selectors.DefaultSelector()
    opened = [Connection(port) for _ in range(connections)]
    cpu, started = time.process_time(), time.perf_counter()
    for connection in opened:
        selector.register(connection.socket, selectors.EVENT_READ, connection)
        connection.ask(next(requests))
    _exchange(selector, requests, outcome, started + seconds)
    outcome.seconds = time.perf_counter() - started
    outcome.client_seconds = time.process_time() - cpu
    for connection in opened:
        connection.socket.close()
    selector.close()
    return outcome


def _exchange(
    selector: selectors.BaseSelector, requests: Iterator[bytes], outcome: LoadResult, deadline: float
) -> None:
    while selector.get_map():
        ready = selector.select(TIMEOUT)
        if not ready:
            raise TimeoutError(f"No answer in {TIMEOUT:.0f} seconds.")
        for key, _ in ready:
            connection: Connection = key.data
            response = connection.take()
            if response is None:
                continue
            now = time.perf_counter()
            _record(outcome, response, now - connection.sent_at)
            if now < deadline:
                connection.ask(next(requests))
            else:
                selector.unregister(connection.socket)


def _record(outcome: LoadResult, response: bytes, seconds: float) -> None:
    status = int(response[9:12])
    outcome.statuses[status] += 1
    outcome.latencies.append(seconds)
    if status != 200 and not outcome.first_refusal:
        outcome.first_refusal = response
