"""The watchdog ends a blocking read at its deadline."""

import socket
import time

import pytest

from core.deadlines import WATCHDOG_GRACE_SECONDS, Deadline, Watchdog
from tests.webhooks.post_calls import MARGIN_MS

pytestmark = pytest.mark.slow

MARGIN = WATCHDOG_GRACE_SECONDS + MARGIN_MS / 1000


def test_watchdog_shuts_socket_down_at_deadline() -> None:
    sock, other = socket.socketpair()
    began = time.monotonic()
    with sock, other, Watchdog().watch(sock, Deadline.after(0.1)):
        assert sock.recv(1) == b""
        assert 0.1 <= time.monotonic() - began < 0.1 + MARGIN


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
