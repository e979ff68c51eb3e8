"""Shops that create codes, pay them and refund some, and note what was acknowledged, while servers die."""

import threading
import time
from collections import Counter, deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import requests

from tests.flows.conftest import ShopClient
from tests.stack import wait_for_progress

# A shop gives up if one request fails for so long.
PATIENCE = 90.0
RETRY_PAUSE = 0.2
OK = 200
AMOUNT, REFUND = 150_000, 50_000
REFUND_EVERY = 4
# A code is refunded after so many more, so that its bank has reported the payment.
LATER = 5


@dataclass
class Lives:
    """What was acknowledged, by the id of each object. rest: the seconds between two codes of a shop."""

    client: ShopClient
    goal: int
    rest: float
    codes: dict[str, str] = field(default_factory=dict)  # the payment of each reference
    bank_payments: dict[str, str] = field(default_factory=dict)  # the payment of each payment at the bank
    refunds: dict[str, str] = field(default_factory=dict)  # the payment of each refund
    refunds_in_doubt: set[str] = field(default_factory=set)  # of these, those without an answer of the bank
    times: list[float] = field(default_factory=list)  # when each operation was acknowledged
    refusals: Counter[str] = field(default_factory=Counter)  # answers that made a shop try again
    finishing: threading.Event = field(default_factory=threading.Event)
    giving_up: threading.Event = field(default_factory=threading.Event)

    @property
    def count(self) -> int:
        return len(self.times)

    @property
    def is_over(self) -> bool:
        return self.giving_up.is_set() or (self.finishing.is_set() and self.count >= self.goal)

    def wait_for(self, operations: int) -> None:
        """Raises TimeoutError if nothing is acknowledged for PATIENCE."""
        wait_for_progress(lambda: self.count, operations, PATIENCE)

    def pause_after(self, instant: float) -> float:
        """The seconds from an instant to the end of the longest pause after it."""
        after = sorted(time for time in self.times if time > instant)
        before = [instant, *after]
        pauses = zip(before, after, strict=False)
        _, end = max((until - since, until) for since, until in pauses)
        return end - instant

    def run(self, shop: int) -> None:
        """Operations of one shop until the test is finishing and all shops together have reached the goal."""
        to_refund: deque[str] = deque()
        with requests.Session() as session:
            number = 0
            while not self.is_over:
                key = f"{shop}-{number}"
                payment_id = self._live(session, key)
                if number % REFUND_EVERY == 0:
                    to_refund.append(payment_id)
                if len(to_refund) > LATER:
                    self._refund(session, to_refund.popleft())
                number += 1
                self.finishing.wait(self.rest)
            for payment_id in to_refund:
                self._refund(session, payment_id)

    def _live(self, session: requests.Session, key: str) -> str:
        """Create a code and pay it; return its payment."""
        request = {"amount": AMOUNT, "currency": "THB", "reference": key}
        code = self._post(session, "/v1/qr-codes", request, f"code-{key}")
        payment_id = self.codes[key] = str(code["payment_id"])
        paid = self._post(session, "/sandbox/v1/payments", {"qr_data": code["qr_data"]}, f"pay-{key}")
        self.bank_payments[str(paid["bank_transaction_id"])] = payment_id
        return payment_id

    def _refund(self, session: requests.Session, payment_id: str) -> None:
        request = {"payment_id": payment_id, "amount": REFUND}
        made = self._post(session, "/v1/refunds", request, f"refund-{payment_id}")
        self.refunds[str(made["refund_id"])] = payment_id

    def _post(self, session: requests.Session, path: str, body: dict[str, Any], key: str) -> dict[str, Any]:
        """Repeat the request with its key until it succeeds: its server may be away, or the bank be late."""
        headers = {"Authorization": f"Bearer {self.client.secret_key}", "Idempotency-Key": key}
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                got = session.post(self.client.base_url + path, json=body, headers=headers, timeout=PATIENCE)
            except requests.RequestException as error:
                answer = type(error).__name__
            else:
                if got.status_code == OK:
                    self.times.append(time.monotonic())
                    found: dict[str, Any] = got.json()
                    return found
                answer = f"{got.status_code} {got.json()['error']['code']}"
            self.refusals[answer] += 1
            assert time.monotonic() < deadline and not self.giving_up.is_set(), answer
            time.sleep(RETRY_PAUSE)


@contextmanager
def lived(lives: Lives, shops: int) -> Iterator[None]:
    """Run the shops during the block, and then until the goal. Raises what a shop raises."""
    with ThreadPoolExecutor(shops) as pool:
        runs = [pool.submit(lives.run, shop) for shop in range(shops)]
        try:
            yield
        except BaseException:
            lives.giving_up.set()
            raise
        lives.finishing.set()
        for run in runs:
            run.result()
