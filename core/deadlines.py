"""Deadlines, and a thread that closes sockets whose deadline has passed."""

import contextlib
import heapq
import itertools
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass


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


# Reads check deadlines themselves. The watchdog is for reads that do not return.
WATCHDOG_GRACE_SECONDS = 0.1


class Watchdog:
    """One thread for all sockets. It sleeps until the earliest deadline."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._by_deadline: list[tuple[Deadline, int]] = []
        self._watched: dict[int, socket.socket] = {}
        self._numbers = itertools.count()
        self._thread: threading.Thread | None = None

    @contextmanager
    def watch(self, sock: socket.socket, deadline: Deadline) -> Iterator[None]:
        """Shut the socket down soon after the deadline unless the block has ended."""
        late = Deadline(deadline.expires_at + WATCHDOG_GRACE_SECONDS)
        with self._changed:
            number = next(self._numbers)
            self._watched[number] = sock
            heapq.heappush(self._by_deadline, (late, number))
            if self._by_deadline[0][1] == number:
                self._changed.notify()
            # A forked process has this object without its thread.
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="watchdog", daemon=True)
                self._thread.start()
        try:
            yield
        finally:
            with self._changed:
                self._watched.pop(number, None)

    def _run(self) -> None:
        with self._changed:
            while True:
                self._changed.wait(self._shut_down_what_is_late())

    def _shut_down_what_is_late(self) -> float | None:
        """Shut down the sockets past their deadline. Return the seconds until the next deadline, if any."""
        while self._by_deadline:
            deadline, number = self._by_deadline[0]
            if number in self._watched and not deadline.is_past:
                return deadline.expires_at - time.monotonic()
            heapq.heappop(self._by_deadline)
            if late := self._watched.pop(number, None):
                with contextlib.suppress(OSError):
                    # The method of SSLSocket would let the reader continue without TLS.
                    socket.socket.shutdown(late, socket.SHUT_RDWR)
        return None
