"""Refunds through all real processes: the worker, the sandbox bank over HTTP, a webhook receiver."""

from collections.abc import Iterator
from typing import Any

import pytest
from standardwebhooks import Webhook

from tests.flows.conftest import SECRET, ShopClient, registered
from tests.webhook_receiver import ReceivedRequest, Receiver

pytestmark = pytest.mark.slow
PATH = "/v1/refunds"
EVENTS = ["refund.completed", "refund.failed"]


@pytest.fixture(autouse=True)
def listening(shop_client: ShopClient, endpoint: Receiver) -> Iterator[None]:
    with registered(shop_client, endpoint.url(), EVENTS):
        yield


@pytest.fixture
def code(shop_client: ShopClient, listening: None) -> Any:
    """A code that was paid at the sandbox bank."""
    made = shop_client.qr_code(amount=150_000)
    shop_client.pay(made)
    shop_client.wait_for_status(made, "succeeded")
    return made


def webhook_about(endpoint: Receiver, refund: dict[str, Any]) -> dict[str, Any]:
    """The only webhook message about a refund, verified."""

    def of_it(received: list[ReceivedRequest]) -> list[ReceivedRequest]:
        about = [each for each in received if each.json["event"] in EVENTS]
        return [each for each in about if each.json["data"]["refund_id"] == refund["refund_id"]]

    (found,) = of_it(endpoint.wait_for(lambda received: bool(of_it(received))))
    verified: dict[str, Any] = Webhook(SECRET).verify(found.body, found.headers)
    return verified


def history(client: ShopClient, code: dict[str, Any]) -> list[tuple[str, str, int]]:
    rows = client.get("/v1/transactions?limit=100")["transactions"]
    return [
        (row["type"], row["status"], row["amount"]) for row in rows if row["payment_id"] == code["payment_id"]
    ]


def test_two_partial_refunds_make_payment_refunded(
    shop_client: ShopClient, endpoint: Receiver, code: dict[str, Any]
) -> None:
    before = shop_client.get("/v1/balance")
    path = f"/Thai/v1/payments/{code['payment_id']}"
    first = shop_client.post(
        PATH, {"payment_id": code["payment_id"], "amount": 60_000, "metadata": {"part": 1}}
    )
    completed = webhook_about(endpoint, first)
    assert completed["event"] == "refund.completed"
    assert completed["data"] == shop_client.get(f"{PATH}/{first['refund_id']}")
    assert (completed["data"]["status"], completed["data"]["metadata"]) == ("completed", {"part": 1})
    assert [shop_client.get(path)[name] for name in ("status", "amount_refunded")] == ["succeeded", 60_000]

    rest = shop_client.post(PATH, {"payment_id": code["payment_id"]})
    assert rest["amount"] == 90_000
    assert webhook_about(endpoint, rest)["data"]["status"] == "completed"
    assert [shop_client.get(path)[name] for name in ("status", "amount_refunded")] == ["refunded", 150_000]
    assert history(shop_client, code) == [
        ("refund", "succeeded", -90_000),
        ("refund", "succeeded", -60_000),
        ("payment", "refunded", 150_000),
    ]
    after = shop_client.get("/v1/balance")
    assert (after["available"], after["reserved"]) == (before["available"] - 150_000, before["reserved"])


def test_failed_refund_is_credited_again(
    shop_client: ShopClient, endpoint: Receiver, code: dict[str, Any]
) -> None:
    before = shop_client.get("/v1/balance")
    closed = {"bank_code": "004", "bank_account": "4051230001", "account_name": "Somchai Jaidee"}
    refund = shop_client.post(PATH, {"payment_id": code["payment_id"], "destination": closed})
    failed = webhook_about(endpoint, refund)
    assert (failed["event"], failed["data"]["status"]) == ("refund.failed", "failed")
    assert failed["data"]["failure_code"]
    assert shop_client.get("/v1/balance") == before
    assert history(shop_client, code)[0] == ("refund", "failed", -150_000)
