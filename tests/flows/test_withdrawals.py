"""Money out by real parts: the worker, the sandbox bank over HTTP, and a receiver that is told."""

from typing import Any

import pytest
from standardwebhooks import Webhook

from tests.flows.conftest import Till
from tests.receiver import Received, Receiver

pytestmark = pytest.mark.slow
SECRET = "whsec_" + "c2VjcmV0" * 5
PATH = "/Thai/v1/withdrawals"
EVENTS = ["withdrawal.pending", "withdrawal.processed", "withdrawal.succeeded", "withdrawal.failed"]


@pytest.fixture(autouse=True)
def listening(till: Till, endpoint: Receiver) -> None:
    till.post("/v1/webhooks", {"url": endpoint.url(), "events": EVENTS, "secret": SECRET})


@pytest.fixture(autouse=True)
def paid(till: Till, listening: None) -> None:
    code = till.qr_code(amount=200_000)
    till.pay(code)
    till.wait_for_status(code, "succeeded")


def withdraw(till: Till, account: str, **fields: Any) -> Any:
    asked = {"amount": 120_000, "currency": "THB", "bank_code": "KBANK", "account_name": "Somtam House"}
    return till.post(PATH, asked | {"bank_account": account} | fields)


def told(endpoint: Receiver, withdrawal: dict[str, Any], *events: str) -> list[dict[str, Any]]:
    """What the receiver was told of a withdrawal, once these events and no others came; verified."""

    def of_it(received: list[Received]) -> dict[str, Received]:
        about = [each for each in received if each.json["event"] in EVENTS]
        wanted = withdrawal["withdrawal_id"]
        return {each.json["event"]: each for each in about if each.json["data"]["withdrawal_id"] == wanted}

    found = of_it(endpoint.wait_for(lambda received: set(events) <= set(of_it(received)), 20))
    assert set(found) == set(events)
    return [Webhook(SECRET).verify(found[event].body, found[event].headers) for event in events]


def test_a_withdrawal_goes_out_and_the_shop_is_told_of_each_step(till: Till, endpoint: Receiver) -> None:
    before = till.get("/v1/balance")
    made = withdraw(till, "4051234567", reference="PAYOUT-1", metadata={"week": 47})
    pending, processed, succeeded = told(endpoint, made, *EVENTS[:3])
    assert (pending["data"], processed["data"]["status"]) == (made, "processing")
    ended = till.get(f"{PATH}/{made['withdrawal_id']}")
    assert (succeeded["data"], ended["status"]) == (ended, "succeeded")
    assert (ended["bank_name"], ended["bank_account"], ended["metadata"]) == (
        "Kasikorn Bank",
        "4567",
        {"week": 47},
    )
    after = till.get("/v1/balance")
    assert (after["available"], after["reserved"]) == (before["available"] - 120_000, before["reserved"])


def test_a_withdrawal_that_the_bank_sends_back_is_in_the_balance_again(
    till: Till, endpoint: Receiver
) -> None:
    before = till.get("/v1/balance")
    made = withdraw(till, "4051230004")
    *_, succeeded, failed = told(endpoint, made, *EVENTS)
    assert (succeeded["data"]["status"], failed["data"]["failure_code"]) == ("succeeded", "returned_by_bank")
    assert till.get(f"{PATH}/{made['withdrawal_id']}") == failed["data"]
    assert till.get("/v1/balance") == before
