"""A silent acquirer delays neither the requests of a neighbour nor money that leaves through a bank."""

import json
import signal
import threading
import time
import uuid
from typing import Any

import pytest
import requests

from tests.stack import Stack, wait_until
from tests.systems.noisy_neighbours.conftest import Neighbour, running

pytestmark = [pytest.mark.slow, pytest.mark.alone]
# The longest time of a withdrawal on a busy machine. With the defect it took 102 s.
ALLOWED_SECONDS = 15.0
# Pending card payments, which are inquired again and again while the acquirer is silent.
PENDING_CHARGES = 8


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
        """Withdraw; return the seconds until it succeeds."""
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


SILENT = {"token_id": "tok_test_timeout", "amount": 150_000, "currency": "THB"}


def test_card_payments_at_a_silent_acquirer_do_not_slow_down_another_merchant(
    stack: Stack, neighbour: Neighbour
) -> None:
    """Sixteen clients pay by the token whose answer comes too late, again and again."""
    seen: set[tuple[int, str]] = set()

    def pay(stopped: threading.Event) -> None:
        session = requests.Session()
        session.headers["Authorization"] = f"Bearer {stack.secret_key}"
        while not stopped.is_set():
            response = session.post(f"{stack.base_url}/v1/payments", json=SILENT, timeout=60)
            shown = response.json()
            seen.add((response.status_code, shown["status"] if response.ok else shown["error"]["code"]))
            if response.status_code == 503:
                assert int(response.headers["Retry-After"]) >= 1
                stopped.wait(0.25)

    neighbour.is_undisturbed_by(pay, clients=16)
    assert seen == {(200, "pending"), (503, "too_many_card_payments")}


def test_repeated_card_payments_under_one_idempotency_key_do_not_slow_down_another_merchant(
    stack: Stack, neighbour: Neighbour
) -> None:
    """A repeat waits until the first request is answered. It must not wait in a thread that others need."""
    seen: set[int] = set()

    def repeat(stopped: threading.Event) -> None:
        session = requests.Session()
        session.headers["Authorization"] = f"Bearer {stack.secret_key}"
        while not stopped.is_set():
            key = f"order-{round_key[0]}"
            response = session.post(
                f"{stack.base_url}/v1/payments", json=SILENT, headers={"Idempotency-Key": key}, timeout=60
            )
            seen.add(response.status_code)
            if "Idempotent-Replayed" in response.headers:
                round_key[0] = uuid.uuid4().hex

    round_key = [uuid.uuid4().hex]
    neighbour.is_undisturbed_by(repeat, clients=16)
    # 429 comes where the machine is fast enough to reach the limit of the key.
    assert 200 in seen and seen <= {200, 409, 429, 503}, json.dumps(sorted(seen))


def test_silent_acquirer_does_not_delay_a_withdrawal(stack: Stack) -> None:
    """This test is the last of this file: it leaves an open circuit, and the other tests pay by card."""
    shop, client = Merchant(stack, "Somtam House"), Merchant(stack, "Larb Palace")
    shop.earn(300_000)
    normal = shop.withdraw(100_000)
    answers: list[str] = []

    def pending() -> int:
        return sum('"pending"' in answer for answer in answers)

    def pay(stopped: threading.Event) -> None:
        # The open circuit refuses most of them, and lets some pass at the end of each of its periods.
        while not stopped.is_set():
            shown = {"token_id": "tok_test_visa", "amount": 150_000, "currency": "THB"}
            headers = {"Idempotency-Key": uuid.uuid4().hex}
            response = client.session.post(
                f"{stack.base_url}/v1/payments", json=shown, headers=headers, timeout=60
            )
            answers.append(response.text)
            stopped.wait(0.1)

    stack.kill("bank", signal.SIGSTOP)  # it accepts connections and does not answer
    try:
        with running(pay, clients=8):
            wait_until(lambda: pending() >= PENDING_CHARGES, 300)
        time.sleep(10)  # until inquiries about them wait for answers
        disturbed = [shop.withdraw(100_000) for _ in range(2)]
    finally:
        stack.kill("bank", signal.SIGCONT)
    print("withdrawal alone, beside, pending charges:", normal, disturbed, pending())  # noqa: T201
    assert max(disturbed) <= max(3 * normal, ALLOWED_SECONDS)
