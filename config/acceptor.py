"""Shares the connections of one listening socket fairly among the worker processes.

All workers listen to the same socket, and the one that is awake takes what arrives. With few clients, one
of two workers took seven of eight connections in half of our measurements, and its processor was the limit.
"""

import asyncio
import mmap
import socket
from collections.abc import Callable
from functools import partial
from typing import Any, cast

from uvicorn.server import Server

from config.http_protocol import HttpProtocol

# How long a worker leaves a connection to one that has fewer. Then it takes it: the other may be busy.
YIELD_SECONDS = 0.001
# How long a worker accepts nothing after the system had no more files or memory for a connection.
PAUSE_SECONDS = 1.0
COUNT_BYTES = 4
# How long a worker that stops waits for the first request of connections that it has just accepted.
FIRST_REQUEST_SECONDS = 1.0
POLL_SECONDS = 0.01


class ConnectionCounts:
    """How many connections each worker has, in memory that the workers share."""

    def __init__(self, workers: int) -> None:
        # Made before the forks. Each worker writes only its own place.
        self._counts = memoryview(mmap.mmap(-1, workers * COUNT_BYTES)).cast("i")

    def reset(self, worker: int) -> None:
        """Begin at none: the worker before this one, in the same place, may have been killed."""
        self._counts[worker] = 0

    def add(self, worker: int, change: int) -> None:
        self._counts[worker] += change

    def has_fewest(self, worker: int) -> bool:
        return self._counts[worker] == min(self._counts)


class CountedConnections(set[Any]):
    """The open connections of a worker, which leave its count when they end."""

    def __init__(self, count: Callable[[int], None]) -> None:
        super().__init__()
        self._count = count

    def discard(self, connection: Any) -> None:
        if connection in self:
            self._count(-1)
        super().discard(connection)


class Acceptor:
    """Accepts connections on a socket, as asyncio's server does, but lets workers with fewer go first."""

    def __init__(
        self,
        listener: socket.socket,
        create_protocol: Callable[[], asyncio.BaseProtocol],
        has_fewest: Callable[[], bool],
        count: Callable[[int], None],
    ) -> None:
        self._listener, self._create_protocol = listener, create_protocol
        self._has_fewest, self._count = has_fewest, count
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
        if self._has_fewest():
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
        self._count(1)
        connection.setblocking(False)
        task = self._loop.create_task(self._loop.connect_accepted_socket(self._create_protocol, connection))
        self._new.add(task)
        task.add_done_callback(self._end_new)

    def _end_new(self, task: asyncio.Task[Any]) -> None:
        self._new.discard(task)
        if task.cancelled() or task.exception():
            self._count(-1)


class FairServer(Server):
    """uvicorn's server of a worker, with a fair share of the connections."""

    def __init__(self, config: Any, counts: ConnectionCounts, worker: int) -> None:
        super().__init__(config)
        counts.reset(worker)
        self._has_fewest, self._count = partial(counts.has_fewest, worker), partial(counts.add, worker)
        self.server_state.connections = CountedConnections(self._count)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=[])
        for each in sockets or []:
            acceptor = Acceptor(each, self._create_protocol, self._has_fewest, self._count)
            self.servers.append(cast(asyncio.Server, acceptor))

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept no more, answer the first request of each new connection, and end.

        A proxy that has just connected is about to send a request. If the connection closed, the proxy could
        not know whether the request arrived, and would not repeat a POST.
        """
        for server in self.servers:
            server.close()
            await server.wait_closed()
        for connection in self._connections:
            connection.is_last = True
        deadline = asyncio.get_running_loop().time() + FIRST_REQUEST_SECONDS
        while any(each.is_new for each in self._connections) and asyncio.get_running_loop().time() < deadline:
            await asyncio.sleep(POLL_SECONDS)
        await super().shutdown(sockets)

    @property
    def _connections(self) -> set[HttpProtocol]:
        return cast(set[HttpProtocol], self.server_state.connections)

    def _create_protocol(self) -> HttpProtocol:
        return HttpProtocol(self.config, self.server_state, self.lifespan.state)
