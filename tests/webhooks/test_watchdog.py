"""A read that would not come back by itself is ended from outside, in time."""

import socket
import ssl
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest

from core.deadlines import Deadline
from core.watchdog import GRACE_SECONDS, Watchdog
from tests.webhooks.certificates import Authority
from tests.webhooks.posting import ENDURING, MARGIN_MS, post
from tests.webhooks.receivers import listening, then_stalls
from webhooks.reading import Incoming

HOST = "hooks.shop.test"
MARGIN = GRACE_SECONDS + MARGIN_MS / 1000


def test_a_socket_is_shut_down_at_its_deadline_and_not_before() -> None:
    sock, other = socket.socketpair()
    began = time.monotonic()
    with sock, other, Watchdog().over(sock, Deadline.after(0.1)):
        assert sock.recv(1) == b""
        assert 0.1 <= time.monotonic() - began < 0.1 + MARGIN


def test_the_earliest_deadline_comes_first_and_what_has_ended_is_left_alone() -> None:
    dog, pairs = Watchdog(), [socket.socketpair() for _ in range(3)]
    (late, _), (early, _), (done, other) = pairs
    with dog.over(late, Deadline.after(60)):
        with dog.over(done, Deadline.after(1)):
            pass
        with dog.over(early, Deadline.after(1.1)):
            assert early.recv(1) == b""
        other.send(b"x")
        assert done.recv(1) == b"x"
        late.setblocking(False)
        with pytest.raises(BlockingIOError):
            late.recv(1)
    for sock in (each for pair in pairs for each in pair):
        sock.close()


def test_a_post_ends_even_when_a_read_of_its_own_would_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Deadline, "left", lambda _: 60.0)
    with listening(then_stalls(b"HTTP/1.1 200 OK\r\nX-Half: ")) as receiver:
        answer = post(receiver.url(), timeouts=ENDURING)
    assert (answer.status, answer.error) == (None, "timeout")
    assert answer.duration_ms < ENDURING.total * 1000 + MARGIN * 1000


@contextmanager
def flooding(tls: ssl.SSLContext) -> Iterator[tuple[int, threading.Event, threading.Event]]:
    """A port where session tickets, made beforehand, follow the handshake.

    The events tell that they do, and that all of them were taken.
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
def test_a_flood_of_session_tickets_does_not_hold_a_read(authority: Authority, tls: ssl.SSLContext) -> None:
    server = authority.server(HOST)
    server.num_tickets = 100_000
    with flooding(server) as (port, started, taken), socket.create_connection(("127.0.0.1", port)) as plain:
        sock = tls.wrap_socket(plain, server_hostname=HOST)
        assert started.wait(60)
        deadline = Deadline.after(0.05)
        incoming = Incoming(sock, deadline).makefile("rb")
        with Watchdog().over(sock, deadline), sock, incoming, suppress(OSError):
            incoming.readline()
        assert not taken.is_set()
