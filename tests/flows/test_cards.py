"""Card payments through all real processes: web server, sandbox acquirer, sweep, receiver."""

import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
import requests

from tests.flows.conftest import ShopClient, registered
from tests.stack import Stack, wait_until
from tests.webhook_receiver import Receiver

pytestmark = pytest.mark.slow
EVENTS = ["payment.pending", "payment.succeeded", "payment.failed"]


def pay(client: ShopClient, token: str, key: str) -> requests.Response:
    return requests.post(
        f"{client.base_url}/v1/payments",
        json={"token_id": token, "amount": 150_000, "currency": "THB"},
        headers={"Authorization": f"Bearer {client.secret_key}", "Idempotency-Key": key},
        timeout=60,
    )


@pytest.fixture
def listening(shop_client: ShopClient, endpoint: Receiver) -> Iterator[Receiver]:
    """The endpoint of the shop, registered for the payment events."""
    with registered(shop_client, endpoint.url(), EVENTS):
        yield endpoint


def wait_for_event(endpoint: Receiver, event: str, payment_id: str) -> Any:
    def is_it(shown: dict[str, Any]) -> bool:
        return bool(shown["event"] == event and shown["data"].get("payment_id") == payment_id)

    received = endpoint.wait_for(lambda found: any(is_it(each.json) for each in found), 60)
    return next(each.json for each in received if is_it(each.json))


def is_a_card_pending(client: ShopClient) -> bool:
    pending = client.get("/Thai/v1/payments?status=pending&limit=100")["payments"]
    return any(payment["qr_code_id"] is None for payment in pending)


def test_declined_card_is_402_with_event_and_replayed_answer(
    shop_client: ShopClient, listening: Receiver
) -> None:
    refused = pay(shop_client, "tok_test_declined", "flow-declined")
    assert (refused.status_code, refused.json()["error"]["code"]) == (402, "card_declined")
    payment_id = refused.json()["error"]["payment_id"]
    assert shop_client.get(f"/v1/payments/{payment_id}")["status"] == "failed"
    history = shop_client.get("/v1/transactions?status=failed")["transactions"]
    assert [row["type"] for row in history if row["payment_id"] == payment_id] == ["failed"]
    shown = wait_for_event(listening, "payment.failed", payment_id)
    assert shown["data"]["failure_code"] == "card_declined"
    again = pay(shop_client, "tok_test_declined", "flow-declined")
    assert (again.status_code, again.content) == (402, refused.content)
    assert again.headers["Idempotent-Replayed"] == "true"


def test_card_payment_at_a_silent_acquirer_succeeds_by_inquiry(
    shop_client: ShopClient, listening: Receiver
) -> None:
    pending = pay(shop_client, "tok_test_timeout", "flow-timeout")
    assert (pending.status_code, pending.json()["status"]) == (200, "pending")
    payment_id = pending.json()["payment_id"]
    wait_for_event(listening, "payment.pending", payment_id)
    wait_for_event(listening, "payment.succeeded", payment_id)
    assert shop_client.get(f"/v1/payments/{payment_id}")["card"] == {"last4": "4242", "brand": "visa"}


def pay_in_the_end(client: ShopClient, key: str) -> requests.Response:
    """Repeat the request with the same key while too many card payments are in progress."""
    responses: list[requests.Response] = []

    def is_taken() -> bool:
        responses.append(pay(client, "tok_test_visa", key))
        if responses[-1].status_code == 503:
            assert responses[-1].json()["error"]["code"] == "too_many_card_payments"
            assert int(responses[-1].headers["Retry-After"]) >= 1
        return responses[-1].status_code != 503

    wait_until(is_taken, 60)
    return responses[-1]


def test_concurrent_card_payments_succeed_when_refused_requests_are_repeated(shop_client: ShopClient) -> None:
    """Above the limit a card payment is refused and not stored, so the client may repeat it."""
    with ThreadPoolExecutor(20) as pool:
        responses = list(
            pool.map(lambda number: pay_in_the_end(shop_client, f"flow-many-{number}"), range(60))
        )
    assert {(response.status_code, response.json()["status"]) for response in responses} == {
        (200, "succeeded")
    }


def test_web_server_killed_during_a_charge_charges_the_card_once(
    stack: Stack, shop_client: ShopClient
) -> None:
    """The acquirer gets the charge and answers late, so the process is killed between the two commits."""
    with ThreadPoolExecutor(1) as pool:
        begun = pool.submit(pay, shop_client, "tok_test_timeout", "flow-killed")
        wait_until(lambda: is_a_card_pending(shop_client), 60)
        stack.kill("web", signal.SIGKILL)
        with pytest.raises(requests.ConnectionError):
            begun.result()
    wait_until(stack.is_ready, 60)
    response = pay(shop_client, "tok_test_timeout", "flow-killed")
    assert response.status_code == 200, response.text
    payment_id = response.json()["payment_id"]
    wait_until(lambda: bool(shop_client.get(f"/v1/payments/{payment_id}")["status"] == "succeeded"), 60)
    history = shop_client.get("/v1/transactions")["transactions"]
    assert [row["type"] for row in history if row["payment_id"] == payment_id] == ["payment"]
