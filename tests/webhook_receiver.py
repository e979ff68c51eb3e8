"""A real HTTP server on loopback that stores its requests and has a table of replies.

It stands for a merchant's endpoint. Subclasses in tests/banks stand for banks.
"""

import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

import orjson


@dataclass(frozen=True)
class ReceivedRequest:
    """A received request. Header names are in lower case; received_at is in seconds since the epoch."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    received_at: float

    @property
    def json(self) -> dict[str, Any]:
        data: dict[str, Any] = orjson.loads(self.body)
        return data


@dataclass(frozen=True)
class Reply:
    """The reply to a request: after an event or `delay` seconds, never (hangs), or by closing."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b"ok"
    delay: float = 0.0
    after: threading.Event | None = None
    hangs: bool = False
    closes: bool = False


class Receiver:
    """Set replies with `on`, read `requests`, wait with `wait_for`."""

    def __init__(self, port: int) -> None:
        self.base_url = f"http://127.0.0.1:{port}"
        self.requests: list[ReceivedRequest] = []
        self.closing = threading.Event()
        self._replies: dict[str, list[Reply]] = {}
        self._changed = threading.Condition()

    def url(self, path: str = "/hook") -> str:
        return self.base_url + path

    def on(self, path: str, *replies: Reply) -> None:
        """Send these replies to requests for `path`, one after the other. The last one is repeated."""
        with self._changed:
            self._replies[path] = list(replies)

    def to(self, path: str) -> list[ReceivedRequest]:
        """The requests to `path`, in the order of their arrival."""
        with self._changed:
            return [request for request in self.requests if request.path == path]

    def wait_for(
        self, predicate: Callable[[list[ReceivedRequest]], bool], timeout: float = 60.0
    ) -> list[ReceivedRequest]:
        """Wait until `predicate` holds for the requests, and return them. Raises TimeoutError."""
        with self._changed:
            if not self._changed.wait_for(lambda: predicate(self.requests), timeout):
                raise TimeoutError(f"still not true after {timeout} s, with {len(self.requests)} requests")
            return list(self.requests)

    def take(self, request: ReceivedRequest) -> Reply:
        """Store a request and return the reply."""
        with self._changed:
            self.requests.append(request)
            self._changed.notify_all()
            return self.reply_to(request)

    def reply_to(self, request: ReceivedRequest) -> Reply:
        """From the table. A subclass can compute the reply instead."""
        replies = self._replies.get(request.path, [Reply()])
        return replies.pop(0) if len(replies) > 1 else replies[0]

    @classmethod
    @contextmanager
    def running(cls) -> Iterator[Self]:
        """A receiver that serves during the block."""
        with _Server(("127.0.0.1", 0), _Handler) as server:
            server.receiver = receiver = cls(server.server_address[1])
            thread = threading.Thread(
                target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True
            )
            thread.start()
            try:
                yield receiver
            finally:
                receiver.closing.set()
                server.shutdown()
                thread.join()


class _Server(ThreadingHTTPServer):
    request_queue_size = 256
    # Do not wait for threads whose client does not close.
    block_on_close = False
    receiver: Receiver

    def handle_error(self, *_: Any) -> None:
        """Ignore clients that close the connection."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Head and body go out as two packets; without this the second one waits 40 ms.
    disable_nagle_algorithm = True
    server: _Server

    def _handle(self) -> None:
        receiver = self.server.receiver
        body = self.rfile.read(int(self.headers.get("content-length", 0)))
        headers = {name.lower(): value for name, value in self.headers.items()}
        reply = receiver.take(ReceivedRequest(self.command, self.path, headers, body, time.time()))
        if reply.after is not None:
            reply.after.wait()
        receiver.closing.wait(None if reply.hangs else reply.delay)
        self.close_connection = reply.closes or receiver.closing.is_set()
        if not self.close_connection:
            self._send(reply)

    do_GET = do_POST = do_PUT = do_DELETE = _handle

    def _send(self, reply: Reply) -> None:
        self.send_response(reply.status)
        for name, value in {"Content-Length": str(len(reply.body)), **reply.headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(reply.body)

    def log_message(self, *_: Any) -> None:
        """Print nothing: tests read `requests`."""


running_receiver = Receiver.running
