"""The load of whole lives: shops with their bank and their webhooks, in one event loop.

A life: the shop makes a code, its bank reports the payment, the webhook arrives, and the shop polls once. Any
unexpected answer, and any webhook that is wrong, missing or repeated, stops the run.
"""

import asyncio
import json
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import count
from typing import Any, Self, cast

import uvloop

from bench import endpoint, load
from bench.load import NotMeasurable
from bench.shops import Bank, Request, Shop, WrongWebhook

HOST = "127.0.0.1"
PATIENCE_SECONDS = 20.0
# Wait so long for repeated webhooks after the last life.
DUPLICATE_SECONDS = 0.3
CREATE, NOTIFY, POLL = "make a code", "the bank's notification", "poll the payment"
REQUESTS = (CREATE, NOTIFY, POLL)
HEADERS = {name: f"\r\n{name}:".encode() for name in ("webhook-id", "webhook-timestamp", "webhook-signature")}
OK = b"200"


@dataclass
class LivesResult:
    """The seconds of each request by its name, and from each code to its webhook."""

    requests: dict[str, list[float]] = field(default_factory=lambda: {name: [] for name in REQUESTS})
    webhooks: list[float] = field(default_factory=list)
    seconds: float = 0.0
    client_seconds: float = 0.0

    @property
    def count(self) -> int:
        """Whole lives: the poll is their last step."""
        return len(self.requests[POLL])

    @property
    def rate(self) -> float:
        """Whole lives a second."""
        return self.count / self.seconds


def quantile(seconds: Sequence[float], share: float) -> float:
    """A quantile in milliseconds, or 0 of nothing."""
    ordered = sorted(seconds)
    return 1000 * ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


class Connection(asyncio.Protocol):
    """A kept connection with at most one open request."""

    def __init__(self) -> None:
        self._received = b""
        self._response: asyncio.Future[bytes] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)

    def ask(self, request: Request) -> "asyncio.Future[bytes]":
        self._received, self._response = b"", asyncio.get_running_loop().create_future()
        self.transport.write(request.to_bytes())
        return self._response

    def data_received(self, data: bytes) -> None:
        self._received += data
        if load.is_whole(self._received) and self._response is not None and not self._response.done():
            self._response.set_result(self._received)

    def connection_lost(self, error: Exception | None) -> None:
        if self._response is not None and not self._response.done():
            self._response.set_exception(NotMeasurable("The server closed a kept connection."))


class Webhook(endpoint.Endpoint):
    """The endpoint of a shop: it verifies a message and answers."""

    def __init__(self, take: Callable[[dict[str, str], bytes], None]) -> None:
        super().__init__()
        self._take = take

    def receive(self, head: bytes, lower: bytes, body: bytes) -> None:
        headers = {name: endpoint.header(head, lower, key).decode() for name, key in HEADERS.items()}
        self._take(headers, body)
        self.send(endpoint.OK)


class Lives:
    """Lives of the payments of some shops. Use it as a context, and `open` the shops at the `urls`."""

    def __init__(self, port: int, bank: Bank, count_of_shops: int) -> None:
        self._port, self._bank = port, bank
        self._runner = asyncio.Runner(loop_factory=uvloop.new_event_loop)
        self._shops: Sequence[Shop] = ()
        self._numbers = count()
        self._free: deque[Connection] = deque()
        self._waiting: dict[str, asyncio.Future[float]] = {}
        self._error: Exception | None = None
        self.payment_ids: set[str] = set()
        self.urls = self._runner.run(self._listen(count_of_shops))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._runner.close()

    def open(self, shops: Sequence[Shop]) -> None:
        """The shops, in the order of the URLs of their webhooks."""
        self._shops = shops

    def closed_loop(self, *, seconds: float, at_once: int) -> LivesResult:
        """Keep `at_once` lives under way for `seconds`; each next one begins when one ends.

        Raises NotMeasurable.
        """
        result = LivesResult()
        self._run(self._closed_loop(result, seconds, at_once))
        return result

    def _run(self, work: Any) -> None:
        try:
            self._runner.run(work)
        except ExceptionGroup as group:
            raise group.exceptions[0] from None
        self._runner.run(self._finish())
        if self._error is not None:
            raise self._error

    async def _finish(self) -> None:
        """Close the connections, because the server does so while they are idle. Wait for late webhooks."""
        while self._free:
            self._free.pop().transport.close()
        await asyncio.sleep(DUPLICATE_SECONDS)

    async def _closed_loop(self, result: LivesResult, seconds: float, at_once: int) -> None:
        cpu, started = time.process_time(), time.perf_counter()

        async def repeat() -> None:
            while time.perf_counter() < started + seconds:
                await self._live(result)

        async with asyncio.TaskGroup() as group:
            for _ in range(at_once):
                group.create_task(repeat())
        result.seconds = time.perf_counter() - started
        result.client_seconds = time.process_time() - cpu

    async def _live(self, result: LivesResult) -> None:
        """Raises NotMeasurable."""
        shop = self._shops[next(self._numbers) % len(self._shops)]
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                await self._live_in_time(shop, result)
        except TimeoutError:
            raise NotMeasurable(f"A life took over {PATIENCE_SECONDS:.0f} seconds.") from None

    async def _live_in_time(self, shop: Shop, result: LivesResult) -> None:
        code = await self._ask(shop.creation(), result.requests[CREATE])
        created, payment_id = time.perf_counter(), code["payment_id"]
        webhook = self._waiting[payment_id] = asyncio.get_running_loop().create_future()
        notification = self._bank.notification(code["qr_data"], datetime.now(UTC))
        answer = await self._ask(notification, result.requests[NOTIFY])
        if answer != {"status": "received"}:
            raise NotMeasurable(f"The bank got {answer}.")
        result.webhooks.append(await webhook - created)
        payment = await self._ask(shop.poll(payment_id), result.requests[POLL])
        if (payment["payment_id"], payment["status"]) != (payment_id, "succeeded"):
            raise NotMeasurable(f"The shop read {payment}.")

    async def _ask(self, request: Request, latencies: list[float]) -> Any:
        begin = time.perf_counter()
        connection = self._free.popleft() if self._free else await self._connect()
        response = await connection.ask(request)
        latencies.append(time.perf_counter() - begin)
        self._free.append(connection)
        if response[9:12] != OK:
            raise NotMeasurable(f"{request.method} {request.path}: {response!r}")
        return json.loads(response[response.index(load.HEAD_END) :])

    async def _connect(self) -> Connection:
        _, connection = await asyncio.get_running_loop().create_connection(Connection, HOST, self._port)
        return connection

    async def _listen(self, number: int) -> list[str]:
        loop = asyncio.get_running_loop()
        takers = [partial(self._take, place) for place in range(number)]
        self._servers = [await loop.create_server(partial(Webhook, take), HOST, 0) for take in takers]
        return [f"http://{HOST}:{server.sockets[0].getsockname()[1]}/" for server in self._servers]

    def _take(self, place: int, headers: dict[str, str], body: bytes) -> None:
        """A webhook of the shop at this place."""
        arrived = time.perf_counter()
        try:
            payment_id = self._shops[place].paid_payment(headers, body)
            waiting = self._waiting.pop(payment_id, None)
            if waiting is None:
                is_repeated = payment_id in self.payment_ids
                raise WrongWebhook(f"{payment_id} came {'twice' if is_repeated else 'unexpectedly'}")
        except (WrongWebhook, KeyError, ValueError) as error:
            self._stop(NotMeasurable(f"A wrong webhook: {error!r}"))
        else:
            self.payment_ids.add(payment_id)
            waiting.set_result(arrived)

    def _stop(self, error: Exception) -> None:
        """Let all lives fail."""
        self._error = self._error or error
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(error)
