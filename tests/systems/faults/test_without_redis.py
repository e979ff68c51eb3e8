"""Redis is away for long: payments, refunds, withdrawals, inquiries and expiry go on."""

import os
import signal
from collections.abc import Iterator

import psycopg
import pytest

from tests.flows.conftest import SECRET, ShopClient
from tests.stack import Stack, wait_until
from tests.webhook_receiver import Receiver

pytestmark = pytest.mark.slow
EVENTS = ["payment.succeeded", "payment.failed", "refund.completed", "withdrawal.succeeded"]
# The workers notice after 30 s that no task arrives.
SECONDS = 150
EXPIRE = "UPDATE payments_payment SET expires_at = created_at + interval '1 second' WHERE id = %s"


@pytest.fixture
def without_redis(shop_client: ShopClient, stack: Stack) -> Iterator[None]:
    frozen = stack.kill("valkey", signal.SIGSTOP)
    yield
    os.kill(frozen, signal.SIGCONT)


def test_everything_goes_on_without_redis(
    shop_client: ShopClient, endpoint: Receiver, without_redis: None, database: psycopg.Connection
) -> None:
    shop_client.post("/v1/webhooks", {"url": endpoint.url(), "events": EVENTS, "secret": SECRET})
    unpaid = shop_client.qr_code()
    database.execute(EXPIRE, [unpaid["payment_id"]])
    silent, paid = shop_client.qr_code(), shop_client.qr_code()
    # The bank does not notify this payment, so only an inquiry finds it.
    shop_client.pay(silent, "callback_lost")
    shop_client.pay(paid)
    shop_client.wait_for_status(paid, "succeeded")
    refund = {"payment_id": paid["payment_id"], "amount": 50_000}
    shop_client.post("/v1/refunds", refund)
    account = {"bank_code": "014", "bank_account": "1234567890", "account_name": "Somtam House"}
    shop_client.post("/v1/withdrawals", {"amount": 20_000, "currency": "THB"} | account)
    told = {"payment.succeeded": 2, "payment.failed": 1, "refund.completed": 1, "withdrawal.succeeded": 1}
    wait_until(lambda: counts(endpoint) == told, SECONDS)
    assert shop_client.wait_for_status(silent, "succeeded")
    assert shop_client.wait_for_status(unpaid, "expired")


def counts(endpoint: Receiver) -> dict[str, int]:
    """How many events of each type have arrived. Each of them may arrive twice."""
    ids: dict[str, set[str]] = {name: set() for name in EVENTS}
    for request in endpoint.to("/hook"):
        if request.json["event"] in ids:
            ids[request.json["event"]].add(request.headers["webhook-id"])
    return {name: len(found) for name, found in ids.items()}
