"""Withdrawals through all real processes: the worker, the sandbox bank over HTTP, a webhook receiver."""

from collections.abc import Iterator
from typing import Any

import pytest
from standardwebhooks import Webhook

from tests.flows.conftest import SECRET, ShopClient, registered
from tests.webhook_receiver import ReceivedRequest, Receiver

pytestmark = pytest.mark.slow
PATH = "/Thai/v1/withdrawals"
EVENTS = ["withdrawal.pending", "withdrawal.processed", "withdrawal.succeeded", "withdrawal.failed"]


@pytest.fixture(autouse=True)
def listening(shop_client: ShopClient, endpoint: Receiver) -> Iterator[None]:
    with registered(shop_client, endpoint.url(), EVENTS):
        yield


@pytest.fixture(autouse=True)
def paid(shop_client: ShopClient, listening: None) -> None:
    code = shop_client.qr_code(amount=200_000)
    shop_client.pay(code)
    shop_client.wait_for_status(code, "succeeded")


def withdraw(client: ShopClient, account: str, **fields: Any) -> Any:
    request_body = {
        "amount": 120_000,
        "currency": "THB",
        "bank_code": "KBANK",
        "account_name": "Somtam House",
    }
    return client.post(PATH, request_body | {"bank_account": account} | fields)


def webhooks_about(endpoint: Receiver, withdrawal: dict[str, Any], *events: str) -> list[dict[str, Any]]:
    """The webhook messages about a withdrawal, verified, when these events and no others have arrived."""

    def of_it(received: list[ReceivedRequest]) -> dict[str, ReceivedRequest]:
        about = [each for each in received if each.json["event"] in EVENTS]
        wanted = withdrawal["withdrawal_id"]
        return {each.json["event"]: each for each in about if each.json["data"]["withdrawal_id"] == wanted}

    found = of_it(endpoint.wait_for(lambda received: set(events) <= set(of_it(received))))
    assert set(found) == set(events)
    return [Webhook(SECRET).verify(found[event].body, found[event].headers) for event in events]


def test_withdrawal_succeeds_with_webhook_for_each_status(
    shop_client: ShopClient, endpoint: Receiver
) -> None:
    before = shop_client.get("/v1/balance")
    made = withdraw(shop_client, "4051234567", reference="PAYOUT-1", metadata={"week": 47})
    pending, processed, succeeded = webhooks_about(endpoint, made, *EVENTS[:3])
    assert (pending["data"], processed["data"]["status"]) == (made, "processing")
    ended = shop_client.get(f"{PATH}/{made['withdrawal_id']}")
    assert (succeeded["data"], ended["status"]) == (ended, "succeeded")
    assert (ended["bank_name"], ended["bank_account"]) == ("Kasikorn Bank", "4567")
    assert ended["metadata"] == {"week": 47}
    after = shop_client.get("/v1/balance")
    assert (after["available"], after["reserved"]) == (before["available"] - 120_000, before["reserved"])


def test_returned_withdrawal_is_credited_again(shop_client: ShopClient, endpoint: Receiver) -> None:
    before = shop_client.get("/v1/balance")
    made = withdraw(shop_client, "4051230004")
    *_, succeeded, failed = webhooks_about(endpoint, made, *EVENTS)
    assert (succeeded["data"]["status"], failed["data"]["failure_code"]) == ("succeeded", "returned_by_bank")
    assert shop_client.get(f"{PATH}/{made['withdrawal_id']}") == failed["data"]
    assert shop_client.get("/v1/balance") == before
