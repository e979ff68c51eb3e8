"""QR payments through all real processes: web server, PostgreSQL, Redis, workers, sandbox bank, receiver."""

import hashlib
import io
import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import psycopg
import pytest
import requests
import zxingcpp
from PIL import Image
from standardwebhooks import Webhook

from tests.flows.conftest import SECRET, ShopClient, registered
from tests.stack import Stack, wait_until
from tests.webhook_receiver import ReceivedRequest, Receiver

pytestmark = pytest.mark.slow
EVENTS = ["payment.pending", "payment.succeeded", "payment.failed"]
QR_ONLY = zxingcpp.BarcodeFormats([zxingcpp.BarcodeFormat.QRCode])


@pytest.fixture
def listening(shop_client: ShopClient, endpoint: Receiver) -> Iterator[Receiver]:
    """The endpoint of the shop, registered for the payment events."""
    with registered(shop_client, endpoint.url(), EVENTS):
        yield endpoint


def events_of(requests_: list[ReceivedRequest], code: dict[str, Any]) -> dict[str, ReceivedRequest]:
    """The webhook requests about the payment of a code, by event type."""
    shown = [request for request in requests_ if request.json["event"] != "webhook.ping"]
    return {
        each.json["event"]: each for each in shown if each.json["data"]["payment_id"] == code["payment_id"]
    }


def wait_for_events(endpoint: Receiver, code: dict[str, Any], *events: str) -> dict[str, ReceivedRequest]:
    received = endpoint.wait_for(lambda found: set(events) <= set(events_of(found, code)), 60)
    return events_of(received, code)


def test_qr_code_is_created_scanned_paid_and_webhook_sent(
    shop_client: ShopClient, listening: Receiver
) -> None:
    code = shop_client.qr_code(reference="order-17", metadata={"table": 4})

    png = requests.get(code["qr_image_url"], timeout=60)
    picture = Image.open(io.BytesIO(png.content)).convert("L")
    assert [found.text for found in zxingcpp.read_barcodes(picture, formats=QR_ONLY)] == [code["qr_data"]]

    assert shop_client.pay(code)["accepted"] is True
    payment = shop_client.wait_for_status(code, "succeeded")
    assert payment["completed_at"] is not None
    history = shop_client.get("/Thai/v1/transactions?status=succeeded")["transactions"]
    assert [row["amount"] for row in history if row["payment_id"] == code["payment_id"]] == [150_000]

    shown = wait_for_events(listening, code, "payment.pending", "payment.succeeded")
    for event, request in shown.items():
        verified = Webhook(SECRET).verify(request.body, request.headers)
        assert (verified["event"], verified["data"]["metadata"]) == (event, {"table": 4})
        assert request.headers["webhook-id"] == verified["event_id"]
    assert requests.get(code["qr_image_url"], timeout=60).status_code == 410


def test_declined_qr_code_fails_and_webhook_is_sent(shop_client: ShopClient, listening: Receiver) -> None:
    code = shop_client.qr_code()
    shop_client.pay(code, "declined")
    assert shop_client.wait_for_status(code, "failed")["failure_code"] == "declined_by_bank"
    shown = wait_for_events(listening, code, "payment.failed")
    assert shown["payment.failed"].json["data"]["status"] == "failed"


def test_repeated_callback_changes_nothing(stack: Stack, shop_client: ShopClient) -> None:
    code = shop_client.qr_code()
    shop_client.pay(code, "callback_repeated")
    shop_client.wait_for_status(code, "succeeded")
    with psycopg.connect(stack.owner_url, autocommit=True) as database:

        def count(sql: str) -> int:
            row = database.execute(sql, [code["payment_id"]]).fetchone()
            return int(row[0]) if row else 0

        notifications = """SELECT count(*) FROM reconciliation_banknotification n JOIN
        reconciliation_banktransaction r ON r.id = n.bank_transaction_id
                     WHERE r.payment_id = %s"""
        wait_until(lambda: count(notifications) == 3, 60)
        assert count("SELECT count(*) FROM reconciliation_banktransaction WHERE payment_id = %s") == 1
        assert count("SELECT count(*) FROM transactions_transaction WHERE payment_id = %s") == 1


def test_money_with_an_unknown_reference_becomes_an_exception(stack: Stack, shop_client: ShopClient) -> None:
    code = shop_client.qr_code()
    transaction_id = shop_client.pay(code, "unknown_reference")["bank_transaction_id"]
    with psycopg.connect(stack.env["DATABASE_URL"], autocommit=True) as database:
        sql = (
            "SELECT match_result FROM reconciliation_banktransaction WHERE bank_reference = %s AND "
            "match_result <> ''"
        )
        wait_until(lambda: database.execute(sql, [transaction_id]).fetchone() == ("unmatched",), 60)
    assert shop_client.get(f"/v1/payments/{code['payment_id']}")["status"] == "pending"


def test_hundred_concurrent_identical_requests_create_one_payment(
    stack: Stack, shop_client: ShopClient
) -> None:
    body, url = (
        {"amount": 4_200, "currency": "THB", "reference": "hundred"},
        f"{shop_client.base_url}/Thai/v1/qr-codes",
    )
    headers = {"Authorization": f"Bearer {shop_client.secret_key}", "Idempotency-Key": "hundred"}
    with ThreadPoolExecutor(100) as pool:
        responses = list(
            pool.map(lambda _: requests.post(url, json=body, headers=headers, timeout=60), range(100))
        )
    assert {response.status_code for response in responses} == {200}
    assert len({hashlib.sha256(response.content).hexdigest() for response in responses}) == 1
    assert sum("Idempotent-Replayed" not in response.headers for response in responses) == 1
    assert shop_client.get("/Thai/v1/payments?reference=hundred")["total"] == 1


def test_qr_payment_without_redis_succeeds_and_webhooks_are_sent_later(
    stack: Stack, shop_client: ShopClient, listening: Receiver
) -> None:
    # Frozen, not killed: a killed Redis is restarted within a second, and a frozen one is the harder case.
    # A busy worker may still deliver the event; a worker that waits for a wake-up cannot.
    redis = stack.kill("valkey", signal.SIGSTOP)
    try:
        code = shop_client.qr_code(reference="no redis")
        shop_client.pay(code)
        shop_client.wait_for_status(code, "succeeded")
    finally:
        os.kill(redis, signal.SIGCONT)
    wait_for_events(listening, code, "payment.pending", "payment.succeeded")


def test_webhook_is_sent_although_redis_was_killed_before_the_qr_code(
    stack: Stack, shop_client: ShopClient, listening: Receiver
) -> None:
    stack.kill("valkey")
    code = shop_client.qr_code()
    shop_client.pay(code)
    shop_client.wait_for_status(code, "succeeded")
    wait_for_events(listening, code, "payment.pending", "payment.succeeded")
