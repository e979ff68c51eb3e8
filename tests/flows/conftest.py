"""One whole instance for the flows, and a client that calls its API like a shop."""

import hashlib
import hmac
import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import requests

from core import ids, vault
from tests import webhook_receiver
from tests.conftest import SandboxBankClient, new_client
from tests.pooled_stack import PooledStack
from tests.reconciliation.claims.builders import NO_BANK
from tests.stack import Stack, wait_until
from tests.webhook_receiver import Receiver

SECRET = "whsec_" + "c2VjcmV0" * 5


@pytest.fixture(scope="package")
def stack(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stack]:
    folder: Path = tmp_path_factory.mktemp("instance") / "data"
    settings = {"RATE_LIMIT": "0", "REQUEST_LOG_RETENTION_DAYS": "30", "CLOSE_SIGNING_KEY": vault.new_key()}
    kind = PooledStack if "BEHIND_PGBOUNCER" in os.environ else Stack
    with kind.on_shared_server(folder, **settings) as running:
        wait_until(running.is_ready, 180)
        yield running


@pytest.fixture(scope="package")
def unpaid(stack: Stack) -> Iterator["UnpaidCode"]:
    """A code that expires after a minute. It is created first, so the minute passes during other tests."""
    made = json.loads(stack.manage("create_merchant", "--name", "Unpaid", "--mode", "test", "--json"))
    client = ShopClient(stack.base_url, made["secret_key"])
    with webhook_receiver.running_receiver() as endpoint:
        hook = {"url": endpoint.url(), "events": ["payment.failed"], "secret": SECRET}
        client.post("/v1/webhooks", hook)
        yield UnpaidCode(client, endpoint, client.qr_code(expiry_minutes=1))


@pytest.fixture
def shop_client(stack: Stack, unpaid: "UnpaidCode") -> "ShopClient":
    return ShopClient(stack.base_url, stack.secret_key)


@dataclass
class ShopClient:
    """The program of a shop, over HTTP."""

    base_url: str
    secret_key: str
    merchant_id: str = ""

    def get(self, path: str) -> Any:
        return self._answer(requests.get(self.base_url + path, headers=self._headers(), timeout=60))

    def post(self, path: str, body: Any, **headers: str) -> Any:
        sent = requests.post(self.base_url + path, json=body, headers=self._headers() | headers, timeout=60)
        return self._answer(sent)

    def delete(self, path: str) -> None:
        response = requests.delete(self.base_url + path, headers=self._headers(), timeout=60)
        assert response.status_code == 204, response.text

    def qr_code(self, **fields: Any) -> Any:
        return self.post("/Thai/v1/qr-codes", {"amount": 150_000, "currency": "THB"} | fields)

    def pay(self, code: dict[str, Any], scenario: str = "paid") -> Any:
        return self.post("/sandbox/v1/payments", {"qr_data": code["qr_data"], "scenario": scenario})

    def wait_for_status(self, code: dict[str, Any], status: str) -> Any:
        path = f"/Thai/v1/payments/{code['payment_id']}"
        wait_until(lambda: bool(self.get(path)["status"] == status), 60)
        return self.get(path)

    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.secret_key}"}

    def _answer(self, response: requests.Response) -> Any:
        assert response.status_code == 200, response.text
        return response.json()


@contextmanager
def registered(client: ShopClient, url: str, events: Sequence[str], secret: str = SECRET) -> Iterator[str]:
    """Register a webhook for the block; yield its path.

    It must not outlive its receiver. Most tests share a merchant, and a later receiver may get the same port:
    it would get the messages of both webhooks, signed with two secrets.
    """
    hook = client.post("/Thai/v1/webhooks", {"url": url, "events": events, "secret": secret})
    path = f"/v1/webhooks/{hook['webhook_id']}"
    try:
        yield path
    finally:
        client.delete(path)


def pay_from_an_unknown_account(stack: Stack, client: ShopClient, code: dict[str, Any]) -> str:
    """Pay the code by a bank that does not name the payer's account; return the reference of the slip."""
    reference = ids.random_text(20)
    changes = {"transaction_id": reference, "payer_bank_code": NO_BANK}
    body = json.dumps(SandboxBankClient(new_client()).notification(code, **changes)).encode()
    at = str(int(time.time()))
    key = stack.env["SANDBOX_BANK_SECRET"].encode()
    digest = hmac.new(key, f"{at}.".encode() + body, hashlib.sha256).hexdigest()
    headers = {"Content-Type": "application/json", "Sandbox-Bank-Signature": f"t={at},v1={digest}"}
    requests.post(f"{stack.base_url}/banks/sandbox/notifications", body, headers=headers, timeout=60)
    client.wait_for_status(code, "succeeded")
    return reference


@dataclass
class UnpaidCode:
    """An unpaid code of a new shop, with the shop's client and webhook receiver."""

    client: ShopClient
    endpoint: Receiver
    code: dict[str, Any]
