"""Clients that create codes without end while the instance has faults."""

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count

import orjson
import requests

from tests.flows.conftest import ShopClient
from tests.stack import wait_for_progress

PATIENCE = 60.0
RETRY_PAUSE = 0.1
LOST = 0


@dataclass(frozen=True)
class Answer:
    """The result of one request. LOST: the connection ended without an answer."""

    status: int
    seconds: float
    body: bytes = b""
    replayed: bool = False


class Load:
    """Repeats the request for each code with its idempotency key until it succeeds."""

    def __init__(self, client: ShopClient, pause: float) -> None:
        self.client = client
        self.pause = pause
        self.answers: list[Answer] = []
        self.made: dict[str, bytes] = {}
        self.stopping = threading.Event()

    @property
    def payment_ids(self) -> set[str]:
        """The payments of the codes that were acknowledged."""
        return {orjson.loads(body)["payment_id"] for body in self.made.values()}

    def wait_for_more(self, codes: int) -> None:
        """Return when so many more codes have been acknowledged.

        Raises TimeoutError if no code is acknowledged for PATIENCE, however slow the machine is.
        """
        wait_for_progress(lambda: len(self.made), len(self.made) + codes, PATIENCE)

    def quantile(self, share: float) -> float:
        """The quantile of the response times in seconds."""
        ordered = sorted(response.seconds for response in self.answers)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]

    def repeat(self) -> dict[str, Answer]:
        """Repeat the request of every code; return the answers by key."""
        with requests.Session() as session:
            return {key: self._ask(session, key) for key in self.made}

    def run(self, shop: int) -> None:
        with requests.Session() as session:
            for number in count():
                if self.stopping.wait(self.pause):
                    return
                self._make(session, f"{shop}-{number}")

    def _make(self, session: requests.Session, key: str) -> None:
        deadline = time.monotonic() + PATIENCE
        while True:
            response = self._ask(session, key)
            self.answers.append(response)
            if response.status == 200:
                break
            assert time.monotonic() < deadline, response
            time.sleep(RETRY_PAUSE)
        self.made[key] = response.body

    def _ask(self, session: requests.Session, key: str) -> Answer:
        started = time.monotonic()
        try:
            got = session.post(
                f"{self.client.base_url}/v1/qr-codes",
                json={"amount": 150_000, "currency": "THB", "reference": key},
                headers={"Authorization": f"Bearer {self.client.secret_key}", "Idempotency-Key": key},
                timeout=PATIENCE,
            )
        except requests.RequestException:
            return Answer(LOST, time.monotonic() - started)
        replayed = "Idempotent-Replayed" in got.headers
        return Answer(got.status_code, time.monotonic() - started, got.content, replayed)


@contextmanager
def steady(client: ShopClient, *, shops: int = 4, pause: float = 0.1) -> Iterator[Load]:
    """Run a load during the block. After it all requested codes are acknowledged."""
    load = Load(client, pause)
    with ThreadPoolExecutor(shops) as pool:
        runs = [pool.submit(load.run, shop) for shop in range(shops)]
        try:
            yield load
        finally:
            load.stopping.set()
        for run in runs:
            run.result()
