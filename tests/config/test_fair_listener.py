"""A worker accepts a connection at once if no other has fewer, else after a moment, and none is lost."""

import asyncio
import os
import resource
import socket
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import asynccontextmanager

import pytest

from config import fair_listener
from config.fair_listener import Counts, FairListener, connection_counts, fair_server

SECONDS = 60
OURS, OTHER = 0, 1


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


@pytest.fixture
def counts() -> Counts:
    return connection_counts(2)


@asynccontextmanager
async def accepting(sock: socket.socket, counts: Counts, worker: int = OURS) -> AsyncIterator[FairListener]:
    each = await fair_server(counts, worker)(Echo, sock=sock)
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


@pytest.mark.parametrize("connections_of_the_other", [1000, 0])
@pytest.mark.slow
def test_every_connection_is_accepted(
    listener: socket.socket, counts: Counts, connections_of_the_other: int
) -> None:
    async def test() -> None:
        counts[OTHER] = connections_of_the_other
        async with accepting(listener, counts):
            assert all(await asyncio.gather(*(is_echoed(listener) for _ in range(50))))

    run(test())


def test_worker_with_fewer_connections_is_first(
    listener: socket.socket, second_worker: socket.socket, counts: Counts, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fair_listener, "YIELD_SECONDS", SECONDS)

    async def test() -> None:
        async with accepting(second_worker, counts, OTHER), accepting(listener, counts):
            counts[OTHER] = 1000
            assert all(await asyncio.gather(*(is_echoed(listener) for _ in range(50))))

    run(test())


@pytest.mark.slow
def test_listener_goes_on_when_the_system_has_files_again(listener: socket.socket, counts: Counts) -> None:
    async def test() -> None:
        async with accepting(listener, counts):
            waiting = socket.socket()
            limits = resource.getrlimit(resource.RLIMIT_NOFILE)
            resource.setrlimit(resource.RLIMIT_NOFILE, (next_file(), limits[1]))
            try:
                waiting.connect(listener.getsockname())
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


def test_closed_listener_leaves_the_connections_to_others(
    listener: socket.socket, second_worker: socket.socket, counts: Counts
) -> None:
    async def test() -> None:
        async with accepting(second_worker, counts, OTHER) as stopped:
            stopped.close()
            async with accepting(listener, counts):
                assert await is_echoed(listener)

    run(test())


def test_connection_counts_from_its_acceptance_to_its_end(listener: socket.socket, counts: Counts) -> None:
    async def test() -> None:
        counts[OURS] = 7  # of a worker that was killed
        async with accepting(listener, counts):
            assert counts[OURS] == 0
            reader, writer = await asyncio.open_connection(*listener.getsockname())
            writer.write(b"hello")
            await reader.readexactly(5)
            assert counts[OURS] == 1
            writer.close()
            while counts[OURS]:
                await asyncio.sleep(0.001)

    run(test())
