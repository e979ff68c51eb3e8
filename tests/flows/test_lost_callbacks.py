"""The bank has the money and never says so: the service asks, and the shop is told."""

import time

import pytest

from tests.flows.conftest import Till
from tests.receiver import Received, Receiver

pytestmark = pytest.mark.slow


def test_a_payment_that_the_bank_never_told_of_succeeds_in_seconds(till: Till, endpoint: Receiver) -> None:
    till.post("/v1/webhooks", {"url": endpoint.url(), "events": ["payment.succeeded"]})
    code = till.qr_code()
    began = time.monotonic()
    till.pay(code, "callback_lost")
    paid = till.wait_for_status(code, "succeeded", seconds=30)
    assert time.monotonic() - began > 2, "not by a callback"

    def about_it(received: list[Received]) -> list[str]:
        return [
            each.json["event"]
            for each in received
            if each.json["data"].get("payment_id") == paid["payment_id"]
        ]

    assert about_it(endpoint.wait_for(lambda received: bool(about_it(received)), 20)) == ["payment.succeeded"]
