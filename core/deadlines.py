"""Deadlines, also of reads that do not return."""

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

# Reads check deadlines themselves. Sockets are shut down for reads that do not return.
GRACE_SECONDS = 0.1


@dataclass(frozen=True, order=True)
class Deadline:
    """An instant of the monotonic clock."""

    expires_at: float

    @classmethod
    def after(cls, seconds: float) -> "Deadline":
        """The instant that many seconds from now."""
        return cls(time.monotonic() + seconds)

    @property
    def is_past(self) -> bool:
        return time.monotonic() >= self.expires_at

    def left(self) -> float:
        """Return the seconds until the deadline, more than zero. Raises TimeoutError after the deadline."""
        seconds = self.expires_at - time.monotonic()
        if seconds <= 0:
            raise TimeoutError
        return seconds

    @contextmanager
    def shuts_down(self, sock: socket.socket) -> Iterator[None]:
        """Shut the socket down soon after the deadline, unless the block has ended. Raises RuntimeError."""
        timer = threading.Timer(self.expires_at + GRACE_SECONDS - time.monotonic(), _shut_down, [sock])
        timer.daemon = True
        timer.start()
        try:
            yield
        finally:
            timer.cancel()
            timer.join()  # afterwards another socket may have this one's number


def _shut_down(sock: socket.socket) -> None:
    with suppress(OSError):
        # The method of SSLSocket would let the reader continue without TLS.
        socket.socket.shutdown(sock, socket.SHUT_RDWR)
