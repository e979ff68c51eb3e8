"""Shares the connections of one listening socket among the worker processes, by public asyncio alone.

All workers listen to the same socket, and the one that is awake takes what arrives: one of two workers took
seven of eight connections in most of our runs, and there were half as many polls a second.
"""

import asyncio
import mmap
import socket
from collections.abc import Awaitable, Callable
from typing import Any

from config.connection_guard import ConnectionGuard

# How long a worker leaves a connection to one that has fewer. Then it takes it: the other may be busy.
YIELD_SECONDS = 0.001
# How long a worker accepts nothing after the system had no more files or memory for a connection.
PAUSE_SECONDS = 1.0
COUNT_BYTES = 4
Counts = memoryview
CreateProtocol = Callable[[], asyncio.Protocol]


def connection_counts(workers: int) -> Counts:
    """How many connections each worker has, in memory that forks share. Each writes only its own place."""
    return memoryview(mmap.mmap(-1, workers * COUNT_BYTES)).cast("i")


def fair_server(counts: Counts, worker: int) -> Callable[..., Awaitable["FairListener"]]:
    """A function like `create_server` of an event loop, for a listening socket."""

    async def create_server(
        protocol_factory: CreateProtocol, *, sock: socket.socket, **_: Any
    ) -> "FairListener":
        return FairListener(sock, protocol_factory, counts, worker)

    return create_server


class FairListener:
    """Accepts one connection at a time, and lets workers with fewer go first."""

    def __init__(
        self, listener: socket.socket, create_protocol: CreateProtocol, counts: Counts, worker: int
    ) -> None:
        self._listener, self._create_protocol = listener, create_protocol
        self._counts, self._worker = counts, worker
        self._counts[worker] = 0  # the worker before this one, in the same place, may have been killed
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._new: set[asyncio.Task[Any]] = set()
        listener.setblocking(False)
        self._listen()

    def close(self) -> None:
        self._stop_listening()
        if self._timer is not None:
            self._timer.cancel()

    async def wait_closed(self) -> None:
        """Wait until each accepted connection has its protocol."""
        if self._new:
            await asyncio.wait(self._new)

    def _listen(self) -> None:
        self._timer = None
        self._loop.add_reader(self._listener, self._on_connection)

    def _stop_listening(self) -> None:
        self._loop.remove_reader(self._listener)

    def _on_connection(self) -> None:
        if self._counts[self._worker] == min(self._counts):
            self._accept()
        else:
            self._stop_listening()
            self._timer = self._loop.call_later(YIELD_SECONDS, self._accept_what_is_left)

    def _accept_what_is_left(self) -> None:
        self._listen()
        self._accept()

    def _accept(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except (BlockingIOError, InterruptedError, ConnectionAbortedError):  # another worker was first
            return
        except OSError:  # no files or no memory are left
            self._stop_listening()
            self._timer = self._loop.call_later(PAUSE_SECONDS, self._listen)
            return
        # Now, because the next connection may arrive before this one has its protocol.
        self._counts[self._worker] += 1
        connection.setblocking(False)
        task = self._loop.create_task(self._loop.connect_accepted_socket(self._guarded, connection))
        self._new.add(task)
        task.add_done_callback(self._end_new)

    def _guarded(self) -> ConnectionGuard:
        return ConnectionGuard(self._create_protocol(), self._end)

    def _end_new(self, task: asyncio.Task[Any]) -> None:
        self._new.discard(task)
        if task.cancelled() or task.exception():
            self._end()

    def _end(self) -> None:
        self._counts[self._worker] -= 1
