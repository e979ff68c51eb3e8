"""One whole instance for the flows, and a client that talks to it like a shop would."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests

from tests import receiver
from tests.receiver import Receiver
from tests.stack import Stack, wait_until

SECRET = "whsec_" + "c2VjcmV0" * 5


@pytest.fixture(scope="package")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder: Path = tmp_path_factory.mktemp("instance") / "data"
    with Stack(folder, RATE_LIMIT="0", WEBHOOK_PACE="1") as running:
        wait_until(running.is_ready, 180)
        yield running


@pytest.fixture(scope="package")
def unpaid(stack: Stack) -> Iterator["Unpaid"]:
    """Made before the other tests, which take up the minute that it lives."""
    made = json.loads(stack.manage("create_merchant", "--name", "Unpaid", "--mode", "test", "--json"))
    till = Till(stack.base_url, made["secret_key"])
    with receiver.listening() as endpoint:
        hook = {"url": endpoint.url(), "events": ["payment.failed"], "secret": SECRET}
        till.post("/v1/webhooks", hook)
        yield Unpaid(till, endpoint, till.qr_code(expiry_minutes=1))


@pytest.fixture
def till(stack: Stack, unpaid: "Unpaid") -> "Till":
    return Till(stack.base_url, stack.secret_key)


@pytest.fixture
def endpoint() -> Iterator[Receiver]:
    with receiver.listening() as listening:
        yield listening


@dataclass
class Till:
    """A shop's own program, speaking HTTP."""

    base_url: str
    secret_key: str

    def get(self, path: str) -> Any:
        return self._answer(requests.get(self.base_url + path, headers=self._headers(), timeout=60))

    def post(self, path: str, body: Any, **headers: str) -> Any:
        sent = requests.post(self.base_url + path, json=body, headers=self._headers() | headers, timeout=60)
        return self._answer(sent)

    def delete(self, path: str) -> None:
        answer = requests.delete(self.base_url + path, headers=self._headers(), timeout=60)
        assert answer.status_code == 204, answer.text

    def qr_code(self, **fields: Any) -> Any:
        return self.post("/Thai/v1/qr-codes", {"amount": 150_000, "currency": "THB"} | fields)

    def pay(self, code: dict[str, Any], scenario: str = "paid") -> Any:
        return self.post("/sandbox/v1/payments", {"qr_data": code["qr_data"], "scenario": scenario})

    def wait_for_status(self, code: dict[str, Any], status: str, seconds: float = 10) -> Any:
        path = f"/Thai/v1/payments/{code['payment_id']}"
        wait_until(lambda: bool(self.get(path)["status"] == status), seconds)
        return self.get(path)

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.secret_key}"}

    def _answer(self, answer: requests.Response) -> Any:
        assert answer.status_code == 200, answer.text
        return answer.json()


@dataclass
class Unpaid:
    """A code of a shop of its own, and where that is told."""

    till: Till
    endpoint: Receiver
    code: dict[str, Any]
