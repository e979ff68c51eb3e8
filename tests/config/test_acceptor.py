"""A worker accepts a connection at once if no other has fewer, else after a moment, and none is lost."""

import asyncio
import os
import resource
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager

import pytest

from config import acceptor
from config.acceptor import Acceptor, ConnectionCounts, CountedConnections

SECONDS = 60


class Echo(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.transport.write(data)


@pytest.fixture
def listener() -> Iterator[socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as each:
        yield each


@pytest.fixture
def second_worker(listener: socket.socket) -> Iterator[socket.socket]:
    """The same socket as another worker has it."""
    with listener.dup() as each:
        yield each


@asynccontextmanager
async def accepting(
    listener: socket.socket,
    has_fewest: Callable[[], bool],
    count: Callable[[int], None] = lambda change: None,
) -> AsyncIterator[Acceptor]:
    each = Acceptor(listener, Echo, has_fewest, count)
    try:
        yield each
    finally:
        each.close()
        await each.wait_closed()


async def is_echoed(listener: socket.socket) -> bool:
    host, port = listener.getsockname()
    reader, writer = await asyncio.open_connection(host, port)
    writer.write(b"hello")
    try:
        return await reader.readexactly(5) == b"hello"
    finally:
        writer.close()


def run(test: Awaitable[None]) -> None:
    async def within_limit() -> None:
        async with asyncio.timeout(SECONDS):
            await test

    asyncio.run(within_limit())


@pytest.mark.parametrize("has_fewest", [True, False])
def test_every_connection_is_accepted(listener: socket.socket, has_fewest: bool) -> None:
    async def test() -> None:
        async with accepting(listener, lambda: has_fewest):
            assert all(await asyncio.gather(*(is_echoed(listener) for _ in range(50))))

    run(test())


def test_worker_with_fewer_connections_is_first(
    listener: socket.socket, second_worker: socket.socket, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acceptor, "YIELD_SECONDS", SECONDS)

    async def test() -> None:
        async with accepting(second_worker, lambda: False), accepting(listener, lambda: True):
            assert all(await asyncio.gather(*(is_echoed(listener) for _ in range(50))))

    run(test())


@pytest.mark.slow
def test_acceptor_goes_on_when_the_system_has_files_again(listener: socket.socket) -> None:
    async def test() -> None:
        async with accepting(listener, lambda: True):
            host, port = listener.getsockname()
            waiting = socket.socket()
            limits = resource.getrlimit(resource.RLIMIT_NOFILE)
            resource.setrlimit(resource.RLIMIT_NOFILE, (next_file(), limits[1]))
            try:
                waiting.connect((host, port))
                for _ in range(10):  # turns of the event loop, which sees the connection
                    await asyncio.sleep(0)
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, limits)
            assert await is_echoed(listener)
            waiting.close()

    run(test())


def next_file() -> int:
    """The number that the next open file gets."""
    number = os.dup(0)
    os.close(number)
    return number


def test_closed_acceptor_leaves_the_connections_to_others(
    listener: socket.socket, second_worker: socket.socket
) -> None:
    async def test() -> None:
        async with accepting(second_worker, lambda: False) as stopped:
            stopped.close()
            async with accepting(listener, lambda: True):
                assert await is_echoed(listener)

    run(test())


def test_counts_say_who_has_fewest() -> None:
    counts = ConnectionCounts(2)
    assert (counts.has_fewest(0), counts.has_fewest(1)) == (True, True)
    counts.add(0, 1)
    assert (counts.has_fewest(0), counts.has_fewest(1)) == (False, True)
    counts.reset(0)
    assert (counts.has_fewest(0), counts.has_fewest(1)) == (True, True)


def test_connection_is_counted_until_it_ends() -> None:
    changes: list[int] = []
    connections = CountedConnections(changes.append)
    connections.add("a connection")
    connections.discard("a connection")
    connections.discard("a connection")
    assert changes == [-1]


def test_connection_is_counted_when_it_is_accepted(listener: socket.socket) -> None:
    async def test() -> None:
        changes: list[int] = []
        async with accepting(listener, lambda: True, changes.append):
            assert all(await asyncio.gather(*(is_echoed(listener) for _ in range(5))))
        assert changes == [1] * 5

    run(test())
