"""Money back by real parts: the worker, the sandbox bank over HTTP, and a receiver that is told."""

from typing import Any

import pytest
from standardwebhooks import Webhook

from tests.flows.conftest import Till
from tests.receiver import Received, Receiver

pytestmark = pytest.mark.slow
SECRET = "whsec_" + "c2VjcmV0" * 5
PATH = "/v1/refunds"
EVENTS = ["refund.completed", "refund.failed"]


@pytest.fixture(autouse=True)
def listening(till: Till, endpoint: Receiver) -> None:
    till.post("/v1/webhooks", {"url": endpoint.url(), "events": EVENTS, "secret": SECRET})


@pytest.fixture
def code(till: Till, listening: None) -> Any:
    """A code that was paid at the sandbox bank."""
    made = till.qr_code(amount=150_000)
    till.pay(made)
    till.wait_for_status(made, "succeeded")
    return made


def told(endpoint: Receiver, refund: dict[str, Any]) -> dict[str, Any]:
    """The one notification about a refund; verified."""

    def of_it(received: list[Received]) -> list[Received]:
        about = [each for each in received if each.json["event"] in EVENTS]
        return [each for each in about if each.json["data"]["refund_id"] == refund["refund_id"]]

    (found,) = of_it(endpoint.wait_for(lambda received: bool(of_it(received)), 20))
    verified: dict[str, Any] = Webhook(SECRET).verify(found.body, found.headers)
    return verified


def history(till: Till, code: dict[str, Any]) -> list[tuple[str, str, int]]:
    rows = till.get("/v1/transactions?limit=100")["transactions"]
    return [
        (row["type"], row["status"], row["amount"]) for row in rows if row["payment_id"] == code["payment_id"]
    ]


def test_a_payment_goes_back_in_two_parts_and_becomes_refunded(
    till: Till, endpoint: Receiver, code: dict[str, Any]
) -> None:
    before = till.get("/v1/balance")
    path = f"/Thai/v1/payments/{code['payment_id']}"
    first = till.post(PATH, {"payment_id": code["payment_id"], "amount": 60_000, "metadata": {"part": 1}})
    completed = told(endpoint, first)
    assert completed["event"] == "refund.completed"
    assert completed["data"] == till.get(f"{PATH}/{first['refund_id']}")
    assert (completed["data"]["status"], completed["data"]["metadata"]) == ("completed", {"part": 1})
    assert [till.get(path)[name] for name in ("status", "amount_refunded")] == ["succeeded", 60_000]

    rest = till.post(PATH, {"payment_id": code["payment_id"]})
    assert rest["amount"] == 90_000
    assert told(endpoint, rest)["data"]["status"] == "completed"
    assert [till.get(path)[name] for name in ("status", "amount_refunded")] == ["refunded", 150_000]
    assert history(till, code) == [
        ("refund", "succeeded", -90_000),
        ("refund", "succeeded", -60_000),
        ("payment", "refunded", 150_000),
    ]
    after = till.get("/v1/balance")
    assert (after["available"], after["reserved"]) == (before["available"] - 150_000, before["reserved"])


def test_a_refund_that_the_bank_refuses_is_in_the_balance_again(
    till: Till, endpoint: Receiver, code: dict[str, Any]
) -> None:
    before = till.get("/v1/balance")
    closed = {"bank_code": "004", "bank_account": "4051230001", "account_name": "Somchai Jaidee"}
    refund = till.post(PATH, {"payment_id": code["payment_id"], "destination": closed})
    failed = told(endpoint, refund)
    assert (failed["event"], failed["data"]["status"]) == ("refund.failed", "failed")
    assert failed["data"]["failure_code"]
    assert till.get("/v1/balance") == before
    assert history(till, code)[0] == ("refund", "failed", -150_000)
