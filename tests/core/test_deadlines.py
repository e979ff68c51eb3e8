"""A deadline ends a blocking read."""

import socket
import time

import pytest

from core.deadlines import GRACE_SECONDS, Deadline
from tests.webhooks.post_calls import MARGIN_MS

pytestmark = pytest.mark.slow

MARGIN = GRACE_SECONDS + MARGIN_MS / 1000


def test_socket_is_shut_down_at_deadline() -> None:
    sock, other = socket.socketpair()
    began = time.monotonic()
    with sock, other, Deadline.after(0.1).shuts_down(sock):
        assert sock.recv(1) == b""
        assert 0.1 <= time.monotonic() - began < 0.1 + MARGIN


def test_socket_outlives_a_deadline_whose_block_has_ended() -> None:
    pairs = [socket.socketpair() for _ in range(3)]
    (late, _), (early, _), (done, other) = pairs
    with Deadline.after(60).shuts_down(late):
        with Deadline.after(1).shuts_down(done):
            pass
        with Deadline.after(1.1).shuts_down(early):
            assert early.recv(1) == b""
        other.send(b"x")
        assert done.recv(1) == b"x"
        late.setblocking(False)
        with pytest.raises(BlockingIOError):
            late.recv(1)
    for sock in (each for pair in pairs for each in pair):
        sock.close()
