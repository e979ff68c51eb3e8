"""A silent acquirer, beside money that leaves through a bank."""

import json
import signal
import threading
import time
import uuid
from typing import Any

import pytest
import requests

from tests.flows.noisy_neighbours.conftest import running
from tests.stack import Stack, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.alone]
# What a withdrawal takes on a busy machine at most, if it waits for its own bank only. It was 102 seconds.
ALLOWED_SECONDS = 15.0
# Card payments that stay open while the acquirer is silent: each is inquired again and again.
CHARGES = 40


class Merchant:
    def __init__(self, stack: Stack, name: str) -> None:
        made = stack.manage("create_merchant", "--name", name, "--mode", "test", "--json")
        self.base_url = stack.base_url
        self.session = requests.Session()
        self.session.headers["Authorization"] = f"Bearer {json.loads(made)['secret_key']}"

    def post(self, path: str, **body: Any) -> Any:
        response = self.session.post(f"{self.base_url}{path}", json=body, timeout=60)
        assert response.status_code == 200, response.text
        return response.json()

    def get(self, path: str) -> Any:
        return self.session.get(f"{self.base_url}{path}", timeout=60).json()

    def earn(self, amount: int) -> None:
        code = self.post("/v1/qr-codes", amount=amount, currency="THB")
        self.post("/sandbox/v1/payments", qr_data=code["qr_data"], scenario="paid")
        wait_until(lambda: self.get("/v1/balance")["available"] >= amount, 60)

    def withdraw(self, amount: int) -> float:
        """How many seconds a withdrawal takes."""
        began = time.monotonic()
        made = self.post(
            "/v1/withdrawals",
            amount=amount,
            currency="THB",
            bank_code="SCB",
            bank_account="4051234567",
            account_name="Somtam House",
        )
        path = f"/v1/withdrawals/{made['withdrawal_id']}"
        wait_until(lambda: self.get(path)["status"] == "succeeded", 300)
        return time.monotonic() - began


def test_silent_acquirer_does_not_delay_a_withdrawal(stack: Stack) -> None:
    shop, till = Merchant(stack, "Somtam House"), Merchant(stack, "Larb Palace")
    shop.earn(300_000)
    normal = shop.withdraw(100_000)
    made: list[str] = []

    def pay(stopped: threading.Event) -> None:
        while len(made) < CHARGES and not stopped.is_set():
            shown = {"token_id": "tok_test_visa", "amount": 150_000, "currency": "THB"}
            headers = {"Idempotency-Key": uuid.uuid4().hex}
            response = till.session.post(
                f"{stack.base_url}/v1/payments", json=shown, headers=headers, timeout=60
            )
            made.append(response.text)
            stopped.wait(0.1)

    stack.kill("bank", signal.SIGSTOP)  # its acquirer takes connections and answers nothing
    try:
        with running(pay, clients=8):
            wait_until(lambda: len(made) >= CHARGES, 300)
        time.sleep(10)  # until the inquiries of these wait for answers
        disturbed = [shop.withdraw(100_000) for _ in range(2)]
    finally:
        stack.kill("bank", signal.SIGCONT)
    pending = sum('"pending"' in text for text in made)
    shown = (normal, disturbed, pending)
    print("withdrawal alone, beside, pending charges:", shown)  # noqa: T201
    assert pending >= 8
    assert max(disturbed) <= max(3 * normal, ALLOWED_SECONDS)
