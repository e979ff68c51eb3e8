"""The watchdog ends a blocking read at its deadline."""

import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from core.deadlines import WATCHDOG_GRACE_SECONDS, Deadline, Watchdog
from tests.webhooks.certificates import Authority
from tests.webhooks.misbehaving_receivers import listening, then_stalls
from tests.webhooks.post_calls import MARGIN_MS, MEDIUM_TIMEOUTS, post
from webhooks.http.response_reader import ResponseSocket

HOST = "hooks.shop.test"
MARGIN = WATCHDOG_GRACE_SECONDS + MARGIN_MS / 1000


def test_watchdog_shuts_socket_down_at_deadline() -> None:
    sock, other = socket.socketpair()
    began = time.monotonic()
    with sock, other, Watchdog().watch(sock, Deadline.after(0.1)):
        assert sock.recv(1) == b""
        assert 0.1 <= time.monotonic() - began < 0.1 + MARGIN


@pytest.mark.slow
def test_watchdog_handles_earliest_deadline_first() -> None:
    dog, pairs = Watchdog(), [socket.socketpair() for _ in range(3)]
    (late, _), (early, _), (done, other) = pairs
    with dog.watch(late, Deadline.after(60)):
        with dog.watch(done, Deadline.after(1)):
            pass
        with dog.watch(early, Deadline.after(1.1)):
            assert early.recv(1) == b""
        other.send(b"x")
        assert done.recv(1) == b"x"
        late.setblocking(False)
        with pytest.raises(BlockingIOError):
            late.recv(1)
    for sock in (each for pair in pairs for each in pair):
        sock.close()


@pytest.mark.slow
def test_watchdog_ends_a_post_blocked_in_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Deadline, "left", lambda _: 60.0)
    with listening(then_stalls(b"HTTP/1.1 200 OK\r\nX-Half: ")) as receiver:
        answer = post(receiver.url(), timeouts=MEDIUM_TIMEOUTS)
    assert (answer.status, answer.error) == (None, "timeout")
    assert answer.duration_ms < MEDIUM_TIMEOUTS.total * 1000 + MARGIN * 1000


@contextmanager
def flooding(tls: ssl.SSLContext) -> Iterator[tuple[int, threading.Event, threading.Event]]:
    """A port that sends prepared session tickets after the handshake.

    The events are set when it starts to send them, and when all were received.
    """
    started, taken = threading.Event(), threading.Event()

    accepted: list[socket.socket] = []

    def run() -> None:
        sock, _ = server.accept()
        accepted.append(sock)
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        session = tls.wrap_bio(incoming, outgoing, server_side=True)
        with sock:
            while True:
                try:
                    session.do_handshake()
                    break
                except ssl.SSLWantReadError:
                    sock.sendall(outgoing.read())
                    incoming.write(sock.recv(65536))
            started.set()
            with suppress(OSError):
                sock.sendall(outgoing.read())
                taken.set()

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=run)
        thread.start()
        yield server.getsockname()[1], started, taken
        with suppress(OSError):
            accepted[0].shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.mark.slow
@pytest.mark.alone
def test_flood_of_tls_session_tickets_ends_at_deadline(authority: Authority, tls: ssl.SSLContext) -> None:
    server = authority.server(HOST)
    server.num_tickets = 100_000
    with flooding(server) as (port, started, taken), socket.create_connection(("127.0.0.1", port)) as plain:
        sock = tls.wrap_socket(plain, server_hostname=HOST)
        assert started.wait(60)
        deadline = Deadline.after(0.05)
        incoming = ResponseSocket(sock, deadline).makefile("rb")
        with Watchdog().watch(sock, deadline), sock, incoming, suppress(OSError):
            incoming.readline()
        assert not taken.is_set()
