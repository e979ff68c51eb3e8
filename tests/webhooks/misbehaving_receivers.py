"""Receivers on loopback that misbehave: each is a script run after every request it reads."""

import contextlib
import itertools
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

Script = Callable[["ReceiverConnection"], None]


@dataclass
class Receiver:
    """What arrived: `heads` and `bodies` of the requests, `names` asked for in TLS, bytes `sent` back."""

    port: int
    connections: int = 0
    heads: list[str] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    names: list[str | None] = field(default_factory=list)
    sent: int = 0

    def url(self, host: str = "127.0.0.1", *, scheme: str = "http") -> str:
        return f"{scheme}://{host}:{self.port}/hook"


class ReceiverConnection:
    """One connection to a receiver, as a script sees it."""

    def __init__(self, sock: socket.socket, receiver: Receiver, closing: threading.Event) -> None:
        self.sock, self.receiver, self.closing = sock, receiver, closing

    def send(self, data: bytes) -> None:
        self.sock.sendall(data)
        self.receiver.sent += len(data)

    def hang_up(self) -> None:
        self.sock.shutdown(socket.SHUT_RDWR)

    def reset(self) -> None:
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.sock.close()

    def wait(self, seconds: float | None = None) -> None:
        self.closing.wait(seconds)
        if self.closing.is_set():
            raise ConnectionAbortedError


def replies(*answers: bytes) -> Script:
    """Answer the first request with the first, and so on; the last one again and again."""
    remaining = list(answers)
    return lambda line: line.send(remaining.pop(0) if len(remaining) > 1 else remaining[0])


def one_script_per_request(*scripts: Script) -> Script:
    """One script a request."""
    remaining = list(scripts)

    def script(line: ReceiverConnection) -> None:
        remaining.pop(0)(line)

    return script


def then_closes(answer: bytes) -> Script:
    def script(line: ReceiverConnection) -> None:
        line.send(answer)
        line.hang_up()

    return script


def then_resets(answer: bytes) -> Script:
    def script(line: ReceiverConnection) -> None:
        line.send(answer)
        line.reset()

    return script


def then_stalls(answer: bytes) -> Script:
    def script(line: ReceiverConnection) -> None:
        line.send(answer)
        line.wait()

    return script


def then_drips(answer: bytes, drop: bytes = b"x", every: float = 0.02) -> Script:
    def script(line: ReceiverConnection) -> None:
        line.send(answer)
        while True:
            line.send(drop)
            line.wait(every)

    return script


def then_floods(answer: bytes, flood: bytes) -> Script:
    def script(line: ReceiverConnection) -> None:
        line.send(answer)
        while True:
            line.send(flood)

    return script


@contextlib.contextmanager
def listening(
    script: Script, *, address: str = "127.0.0.1", tls: ssl.SSLContext | None = None, reads: bool = True
) -> Iterator[Receiver]:
    """A receiver for the time of the block; with `reads` off the script runs before any request is read."""
    closing = threading.Event()
    threads: list[threading.Thread] = []
    lines: list[ReceiverConnection] = []
    with socket.create_server((address, 0)) as server, socket.socket() as last:
        last.bind((address, 0))
        receiver, end = Receiver(port=server.getsockname()[1]), last.getsockname()
        if tls:
            tls.sni_callback = lambda _sock, name, _context: receiver.names.append(name)

        def accept() -> None:
            while True:
                sock, peer = server.accept()
                if peer == end:
                    sock.close()
                    return
                receiver.connections += 1
                lines.append(ReceiverConnection(sock, receiver, closing))
                threads.append(threading.Thread(target=_serve, args=(lines[-1], script, tls, reads)))
                threads[-1].start()

        acceptor = threading.Thread(target=accept)
        acceptor.start()
        try:
            yield receiver
        finally:
            closing.set()
            # Whoever knocked before is let in: a busy machine may not have come to it.
            last.connect_ex(server.getsockname())
            acceptor.join()
            for line in lines:
                with contextlib.suppress(OSError):
                    socket.socket.shutdown(line.sock, socket.SHUT_RDWR)
            for thread in threads:
                thread.join()


def _serve(line: ReceiverConnection, script: Script, tls: ssl.SSLContext | None, reads: bool) -> None:
    with contextlib.suppress(OSError, ValueError):
        try:
            if tls:
                line.sock.settimeout(60)
                line.sock = tls.wrap_socket(line.sock, server_side=True)
            if not reads:
                script(line)
            while _read_request(line):
                script(line)
        finally:
            line.sock.close()


def _read_request(line: ReceiverConnection) -> bool:
    received = b""
    while b"\r\n\r\n" not in received:
        part = line.sock.recv(65536)
        if not part:
            return False
        received += part
    head, _, body = received.partition(b"\r\n\r\n")
    lengths = [row for row in head.lower().split(b"\r\n") if row.startswith(b"content-length:")]
    while len(body) < int(lengths[0].partition(b":")[2]):
        body += line.sock.recv(65536)
    line.receiver.heads.append(head.decode())
    line.receiver.bodies.append(body)
    return True


@contextlib.contextmanager
def port_with_full_backlog() -> Iterator[int]:
    """A port that lets no more connections in: their first packet is dropped."""
    with contextlib.ExitStack() as open_sockets:
        server = open_sockets.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        for _ in itertools.repeat(None, 4):
            filler = open_sockets.enter_context(socket.socket())
            filler.setblocking(False)
            filler.connect_ex(server.getsockname())
        yield server.getsockname()[1]


@contextlib.contextmanager
def unused_port() -> Iterator[int]:
    """A port on which nobody listens, and nobody will as long as the block lasts."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]
