"""Card payments that wait for their acquirer, beside a neighbour and beside another merchant's money."""

import json
import threading
import uuid

import pytest
import requests

from tests.flows.noisy_neighbours.conftest import Neighbour
from tests.stack import Stack

pytestmark = [pytest.mark.slow, pytest.mark.alone]
SILENT = {"token_id": "tok_test_timeout", "amount": 150_000, "currency": "THB"}


def test_card_payments_at_a_silent_acquirer_do_not_slow_down_a_neighbour(
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


def test_repeated_card_payments_under_one_key_do_not_slow_down_a_neighbour(
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
