"""Shops that go on while machines fail: each request is repeated with its key until it has an answer."""

import os
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from random import Random
from typing import Any

import requests

from tests.stack import Stack

# Longer than both servers of PostgreSQL are away, one after the other, on a busy machine.
PATIENCE = 240.0
RETRY_PAUSE = 0.1
# The long form of `make chaos` has eight shops that do not rest.
REST = float(os.environ.get("CHAOS_REST", "0.2"))
TIMEOUT = 20.0
AMOUNT = 150_000
# Longer than a run: money for an expired code waits for a person, and its payment does not succeed.
EXPIRY_MINUTES = 60
PART = 100
PAGE = 100
# How often each operation is chosen.
WEIGHTS = {"poll": 55, "create": 25, "pay": 12, "refund": 4, "withdraw": 2, "read_list": 2}
BANK_ACCOUNT = {"bank_code": "KBANK", "bank_account": "4051234567", "account_name": "Somtam House"}
# The answer may be another one later.
TEMPORARY = {409: {"idempotency_key_in_progress"}, 429: {"rate_limit_exceeded"}}


class Shop:
    """One merchant, with what the service acknowledged to it, by id. Its program asks any machine."""

    def __init__(self, machines: Sequence[Stack], secret_key: str, chance: Random) -> None:
        self.machines, self.chance = machines, chance
        self.session = requests.Session()
        self.session.headers["Authorization"] = f"Bearer {secret_key}"
        self.key_number = 0
        self.codes: list[dict[str, Any]] = []
        self.open: list[dict[str, Any]] = []
        self.paid: list[str] = []
        self.refunds: list[str] = []
        self.withdrawals: list[str] = []
        self.final: dict[str, str] = {}
        self.answers: Counter[int] = Counter()
        self.operations = 0

    def work(self, stopping: threading.Event) -> None:
        while not stopping.wait(REST):
            (name,) = self.chance.choices(list(WEIGHTS), list(WEIGHTS.values()))
            getattr(self, name)()
            self.operations += 1

    def create(self) -> None:
        wanted = {"amount": AMOUNT, "currency": "THB", "expiry_minutes": EXPIRY_MINUTES}
        code = self.order("/Thai/v1/qr-codes", wanted)
        self.codes.append(code)
        self.open.append(code)

    def poll(self) -> None:
        if self.codes:
            payment_id = self.chance.choice(self.codes[-100:])["payment_id"]
            status = self.get(f"/Thai/v1/payments/{payment_id}")["status"]
            known = self.final.get(payment_id, "pending")
            assert status == known or known == "pending", (payment_id, known, status)
            self.final[payment_id] = status

    def pay(self) -> None:
        if self.open:
            code = self.open.pop(self.chance.randrange(len(self.open)))
            self.order("/sandbox/v1/payments", {"qr_data": code["qr_data"], "scenario": "paid"})
            self.paid.append(code["payment_id"])

    def refund(self) -> None:
        """Refund a part. The bank may not have told us of the payment yet: then it is refused."""
        if self.paid:
            wanted = {"payment_id": self.chance.choice(self.paid), "amount": PART}
            self._keep("/v1/refunds", wanted, "refund_id", self.refunds)

    def withdraw(self) -> None:
        wanted = {"amount": 100 * PART, "currency": "THB", **BANK_ACCOUNT}
        self._keep("/Thai/v1/withdrawals", wanted, "withdrawal_id", self.withdrawals)

    def read_list(self) -> None:
        self.get("/v1/payments?limit=5")

    def order(self, path: str, body: dict[str, Any]) -> Any:
        answer = self._answered("POST", path, body)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def get(self, path: str) -> Any:
        answer = self._answered("GET", path, None)
        assert answer.status_code == 200, answer.text
        return answer.json()

    def everything(self, kind: str) -> list[dict[str, Any]]:
        """All payments, refunds, withdrawals or events, the newest first. New ones do not shift the pages."""
        rows: list[dict[str, Any]] = []
        while True:
            after = f"&after={rows[-1][f'{kind[:-1]}_id']}" if rows else ""
            page = self.get(f"/v1/{kind}?limit={PAGE}{after}")[kind]
            rows += page
            if len(page) < PAGE:
                return rows

    def _keep(self, path: str, wanted: dict[str, Any], name: str, kept: list[str]) -> None:
        answer = self._answered("POST", path, wanted)
        if answer.status_code == 200:
            kept.append(answer.json()[name])
        else:
            assert answer.status_code in (400, 402, 409), answer.text

    def _answered(self, method: str, path: str, body: Any) -> requests.Response:
        """Repeat the request, each time at another machine, until it is answered."""
        self.key_number += 1
        headers = {"Idempotency-Key": f"order-{self.key_number}"} if method == "POST" else {}
        deadline = time.monotonic() + PATIENCE
        while True:
            answer = self._ask(method, path, body, headers)
            self.answers[answer.status_code if answer is not None else 0] += 1
            if answer is not None and answer.status_code < 500 and not _is_temporary(answer):
                return answer
            assert time.monotonic() < deadline, (path, answer and answer.text)
            time.sleep(RETRY_PAUSE)

    def _ask(self, method: str, path: str, body: Any, headers: dict[str, str]) -> requests.Response | None:
        machine = self.chance.choice(self.machines)
        try:
            return self.session.request(
                method, machine.base_url + path, json=body, headers=headers, timeout=TIMEOUT
            )
        except requests.RequestException:
            return None


def _is_temporary(answer: requests.Response) -> bool:
    codes = TEMPORARY.get(answer.status_code)
    return codes is not None and answer.json()["error"]["code"] in codes


@contextmanager
def working(shops: Sequence[Shop]) -> Iterator[None]:
    """Let all shops work during the block. After it each request is answered. Raises what a shop raised."""
    stopping = threading.Event()
    with ThreadPoolExecutor(len(shops)) as pool:
        runs = [pool.submit(shop.work, stopping) for shop in shops]
        try:
            yield
        finally:
            stopping.set()
        for run in runs:
            run.result()
