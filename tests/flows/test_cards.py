"""Card payments by real parts: the web server, the sandbox bank's acquirer, the sweep, a receiver."""

import signal
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests

from tests.flows.conftest import Till
from tests.receiver import Receiver
from tests.stack import Stack, wait_until

pytestmark = pytest.mark.slow
EVENTS = ["payment.pending", "payment.succeeded", "payment.failed"]


def pay(till: Till, token: str, key: str) -> requests.Response:
    return requests.post(
        f"{till.base_url}/v1/payments",
        json={"token_id": token, "amount": 150_000, "currency": "THB"},
        headers={"Authorization": f"Bearer {till.secret_key}", "Idempotency-Key": key},
        timeout=60,
    )


def listen(till: Till, endpoint: Receiver) -> None:
    till.post("/v1/webhooks", {"url": endpoint.url(), "events": EVENTS})


def wait_for_event(endpoint: Receiver, event: str, payment_id: str) -> Any:
    def is_it(told: dict[str, Any]) -> bool:
        return bool(told["event"] == event and told["data"].get("payment_id") == payment_id)

    received = endpoint.wait_for(lambda found: any(is_it(each.json) for each in found), 60)
    return next(each.json for each in received if is_it(each.json))


def is_a_card_pending(till: Till) -> bool:
    pending = till.get("/Thai/v1/payments?status=pending&limit=100")["payments"]
    return any(payment["qr_code_id"] is None for payment in pending)


def test_a_declined_card_is_a_402_that_is_stored_told_and_repeated(till: Till, endpoint: Receiver) -> None:
    listen(till, endpoint)
    refused = pay(till, "tok_test_declined", "flow-declined")
    assert (refused.status_code, refused.json()["error"]["code"]) == (402, "card_declined")
    payment_id = refused.json()["error"]["payment_id"]
    assert till.get(f"/v1/payments/{payment_id}")["status"] == "failed"
    history = till.get("/v1/transactions?status=failed")["transactions"]
    assert [row["type"] for row in history if row["payment_id"] == payment_id] == ["failed"]
    told = wait_for_event(endpoint, "payment.failed", payment_id)
    assert told["data"]["failure_code"] == "card_declined"
    again = pay(till, "tok_test_declined", "flow-declined")
    assert (again.status_code, again.content) == (402, refused.content)
    assert again.headers["Idempotent-Replayed"] == "true"


def test_a_silent_acquirer_is_inquired_until_it_says_succeeded(till: Till, endpoint: Receiver) -> None:
    listen(till, endpoint)
    pending = pay(till, "tok_test_timeout", "flow-timeout")
    assert (pending.status_code, pending.json()["status"]) == (200, "pending")
    payment_id = pending.json()["payment_id"]
    wait_for_event(endpoint, "payment.pending", payment_id)
    wait_for_event(endpoint, "payment.succeeded", payment_id)
    assert till.get(f"/v1/payments/{payment_id}")["card"] == {"last4": "4242", "brand": "visa"}


def pay_in_the_end(till: Till, key: str) -> requests.Response:
    """Try again with the same key as long as too many card payments are under way."""
    answers: list[requests.Response] = []

    def is_taken() -> bool:
        answers.append(pay(till, "tok_test_visa", key))
        if answers[-1].status_code == 503:
            assert answers[-1].json()["error"]["code"] == "too_many_card_payments"
            assert int(answers[-1].headers["Retry-After"]) >= 1
        return answers[-1].status_code != 503

    wait_until(is_taken, 60)
    return answers[-1]


def test_many_cards_at_once_all_succeed_in_the_end(till: Till) -> None:
    """Above the limit a card payment is refused at once and stored nowhere, so its client may try again."""
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(lambda number: pay_in_the_end(till, f"flow-many-{number}"), range(60)))
    assert {(answer.status_code, answer.json()["status"]) for answer in answers} == {(200, "succeeded")}


def test_a_web_server_that_dies_while_it_asks_charges_once(stack: Stack, till: Till) -> None:
    """The acquirer hears of it and the answer comes too late, so the kill falls between the two commits."""
    with ThreadPoolExecutor(1) as pool:
        begun = pool.submit(pay, till, "tok_test_timeout", "flow-killed")
        wait_until(lambda: is_a_card_pending(till), 60)
        stack.kill("web", signal.SIGKILL)
        with pytest.raises(requests.ConnectionError):
            begun.result()
    wait_until(stack.is_ready, 60)
    answer = pay(till, "tok_test_timeout", "flow-killed")
    assert answer.status_code == 200, answer.text
    payment_id = answer.json()["payment_id"]
    wait_until(lambda: bool(till.get(f"/v1/payments/{payment_id}")["status"] == "succeeded"), 60)
    history = till.get("/v1/transactions")["transactions"]
    assert [row["type"] for row in history if row["payment_id"] == payment_id] == ["payment"]
