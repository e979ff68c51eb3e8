"""Deliveries a second: many events of one commit, sent to one endpoint on this machine."""

import asyncio
import time
from collections.abc import Callable
from typing import Self

import uvloop

from config.capacity import endpoint
from config.capacity.load import NotMeasurable

HOST = "127.0.0.1"
PATIENCE_SECONDS = 30.0


class Arrivals:
    """An endpoint that counts messages. Use it as a context, and register a webhook at its `url`."""

    def __init__(self) -> None:
        self._runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
        self._seen: set[bytes] = set()
        self._expected = 0
        self._all_arrived: asyncio.Future[float] | None = None
        self.url = self._runner.run(self._listen())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.close()

    def rate(self, count: int, publish: Callable[[int], float]) -> float:
        """Messages a second from the commit to the last arrival. publish: returns the instant of its commit.

        Raises NotMeasurable.
        """
        return self._runner.run(self._rate(count, publish))

    async def _rate(self, count: int, publish: Callable[[int], float]) -> float:
        loop = asyncio.get_running_loop()
        self._all_arrived, self._expected = loop.create_future(), len(self._seen) + count
        committed_at = await asyncio.to_thread(publish, count)
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                last = await self._all_arrived
        except TimeoutError:
            missing = self._expected - len(self._seen)
            raise NotMeasurable(f"{missing} of {count} webhooks did not arrive.") from None
        return count / (last - committed_at)

    async def _listen(self) -> str:
        server = await asyncio.get_running_loop().create_server(lambda: _Counter(self._take), HOST, 0)
        self._server = server
        return f"http://{HOST}:{server.sockets[0].getsockname()[1]}/"

    def _take(self, message_id: bytes) -> None:
        self._seen.add(message_id)
        waiting = self._all_arrived
        if waiting is not None and not waiting.done() and len(self._seen) >= self._expected:
            waiting.set_result(time.time())


class _Counter(endpoint.Endpoint):
    def __init__(self, take: Callable[[bytes], None]) -> None:
        super().__init__()
        self._take = take

    def receive(self, head: bytes, lower: bytes, body: bytes) -> None:
        self._take(endpoint.header(head, lower, endpoint.MESSAGE_ID))
        self.send(endpoint.OK)
