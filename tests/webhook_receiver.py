"""A real HTTP server on loopback that stores its requests and answers by a table of replies or by a script.

It stands for a merchant's endpoint. Subclasses in tests/banks stand for banks. Scripts that misbehave are in
tests/webhooks/misbehaving_receivers.py.
"""

import http.client
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any, Self

import orjson

Script = Callable[["ReceiverConnection"], None]


@dataclass(frozen=True)
class ReceivedRequest:
    """A received request. Header names are in lower case; received_at is in seconds since the epoch."""

    head: str
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
    """A script that answers after an event or `delay` seconds, never answers (hangs), or closes."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b"ok"
    delay: float = 0.0
    after: threading.Event | None = None
    hangs: bool = False
    closes: bool = False

    def __call__(self, connection: "ReceiverConnection") -> None:
        if self.after is not None:
            self.after.wait()
        closing = connection.receiver.closing
        closing.wait(None if self.hangs else self.delay)
        if self.closes or closing.is_set():
            connection.hang_up()
            return
        headers = {"Content-Length": str(len(self.body)), **self.headers}
        lines = [f"HTTP/1.1 {self.status} {http.client.responses.get(self.status, '')}"]
        lines += [f"{name}: {value}" for name, value in headers.items()]
        connection.send("\r\n".join([*lines, "", ""]).encode("latin-1") + self.body)


class ReceiverConnection:
    """One connection to a receiver, for the scripts of tests."""

    def __init__(self, sock: socket.socket, receiver: "Receiver") -> None:
        self.sock, self.receiver = sock, receiver

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)
        self.receiver.sent += len(data)

    def hang_up(self) -> None:
        self.sock.shutdown(socket.SHUT_RDWR)

    def reset(self) -> None:
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def wait(self, seconds: float | None = None) -> None:
        self.receiver.closing.wait(seconds)
        if self.receiver.closing.is_set():
            raise ConnectionAbortedError

    def serve(self, tls: ssl.SSLContext | None, first: Script | None) -> None:
        """Answer requests until one side closes."""
        with suppress(OSError, ValueError):
            try:
                if tls:
                    self.sock.settimeout(60)
                    self.sock = tls.wrap_socket(self.sock, server_side=True)
                if first:
                    first(self)
                while request := self._read_request():
                    self.receiver.take(request)(self)
                    if request.headers.get("connection", "").lower() == "close":
                        break
            finally:
                self.sock.close()

    def _read_request(self) -> ReceivedRequest | None:
        received = b""
        while b"\r\n\r\n" not in received:
            part = self.sock.recv(65536)
            if not part:
                return None
            received += part
        raw, _, body = received.partition(b"\r\n\r\n")
        head = raw.decode("latin-1")
        first_line, *lines = head.split("\r\n")
        named = (line.partition(":") for line in lines)
        headers = {name.lower(): value.strip() for name, _, value in named}
        while len(body) < int(headers.get("content-length", 0)):
            body += self.sock.recv(65536)
        method, path, _ = first_line.split(" ")
        return ReceivedRequest(head, method, path, headers, body, time.time())


class Receiver:
    """Set replies with `on`, read `requests`, wait with `wait_for`.

    `connections`, `sent` bytes and the `names` that clients asked for in TLS are counted too.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self.base_url = f"http://127.0.0.1:{port}"
        self.requests: list[ReceivedRequest] = []
        self.closing = threading.Event()
        self.default: Script = Reply()
        self.connections = self.sent = 0
        self.names: list[str | None] = []
        self._replies: dict[str, list[Script]] = {}
        self._changed = threading.Condition()

    def url(self, path: str = "/hook", *, host: str = "127.0.0.1", scheme: str = "http") -> str:
        return f"{scheme}://{host}:{self.port}{path}"

    @property
    def heads(self) -> list[str]:
        return [request.head for request in self.requests]

    def on(self, path: str, *replies: Script) -> None:
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

    def take(self, request: ReceivedRequest) -> Script:
        """Store a request and return the reply."""
        with self._changed:
            self.requests.append(request)
            self._changed.notify_all()
            return self.reply_to(request)

    def reply_to(self, request: ReceivedRequest) -> Script:
        """From the table. A subclass can compute the reply instead."""
        replies = self._replies.get(request.path, [self.default])
        return replies.pop(0) if len(replies) > 1 else replies[0]

    @classmethod
    @contextmanager
    def running(
        cls,
        default: Script | None = None,
        *,
        address: str = "127.0.0.1",
        tls: ssl.SSLContext | None = None,
        reads: bool = True,
    ) -> Iterator[Self]:
        """A receiver that serves during the block. `default` answers paths without replies.

        Without `reads` the script also runs before the first request of each connection.
        """
        connections: list[ReceiverConnection] = []
        threads: list[threading.Thread] = []
        with socket.create_server((address, 0), backlog=256) as server, socket.socket() as last:
            last.bind((address, 0))
            receiver, end = cls(server.getsockname()[1]), last.getsockname()
            receiver.default = default or receiver.default
            if tls:
                tls.sni_callback = lambda _sock, name, _context: receiver.names.append(name)

            def accept() -> None:
                while True:
                    sock, peer = server.accept()
                    if peer == end:
                        sock.close()
                        return
                    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    receiver.connections += 1
                    connections.append(ReceiverConnection(sock, receiver))
                    serve, first = connections[-1].serve, None if reads else receiver.default
                    threads.append(threading.Thread(target=serve, args=(tls, first), daemon=True))
                    threads[-1].start()

            acceptor = threading.Thread(target=accept, daemon=True)
            acceptor.start()
            try:
                yield receiver
            finally:
                receiver.closing.set()
                # Connections that were made before this one are still accepted.
                last.connect_ex(server.getsockname())
                acceptor.join()
                for connection in connections:
                    with suppress(OSError):
                        socket.socket.shutdown(connection.sock, socket.SHUT_RDWR)
                for thread in threads:
                    thread.join(timeout=10)


running_receiver = Receiver.running
