"""The main job by real parts: web server, PostgreSQL, Redis, Celery, the sandbox bank, a receiver."""

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

from tests.flows.conftest import SECRET, Till
from tests.receiver import Received, Receiver
from tests.stack import Stack, wait_until

pytestmark = pytest.mark.slow
EVENTS = ["payment.pending", "payment.succeeded", "payment.failed"]
QR_ONLY = zxingcpp.BarcodeFormats([zxingcpp.BarcodeFormat.QRCode])


@pytest.fixture
def listening(till: Till, endpoint: Receiver) -> Iterator[Receiver]:
    """The till's own endpoint, registered for the payment events."""
    hook = till.post("/Thai/v1/webhooks", {"url": endpoint.url(), "events": EVENTS, "secret": SECRET})
    yield endpoint
    till.delete(f"/v1/webhooks/{hook['webhook_id']}")


def told_of(requests_: list[Received], code: dict[str, Any]) -> dict[str, Received]:
    """The notifications about a code's payment, by event."""
    told = [request for request in requests_ if request.json["event"] != "webhook.ping"]
    return {
        each.json["event"]: each for each in told if each.json["data"]["payment_id"] == code["payment_id"]
    }


def wait_for_events(endpoint: Receiver, code: dict[str, Any], *events: str) -> dict[str, Received]:
    received = endpoint.wait_for(lambda found: set(events) <= set(told_of(found, code)), 60)
    return told_of(received, code)


def test_a_code_is_made_scanned_paid_confirmed_and_the_shop_is_told(till: Till, listening: Receiver) -> None:
    code = till.qr_code(reference="order-17", metadata={"table": 4})

    png = requests.get(code["qr_image_url"], timeout=60)
    picture = Image.open(io.BytesIO(png.content)).convert("L")
    assert [found.text for found in zxingcpp.read_barcodes(picture, formats=QR_ONLY)] == [code["qr_data"]]

    assert till.pay(code)["accepted"] is True
    payment = till.wait_for_status(code, "succeeded")
    assert payment["completed_at"] is not None
    history = till.get("/Thai/v1/transactions?status=succeeded")["transactions"]
    assert [row["amount"] for row in history if row["payment_id"] == code["payment_id"]] == [150_000]

    told = wait_for_events(listening, code, "payment.pending", "payment.succeeded")
    for event, request in told.items():
        verified = Webhook(SECRET).verify(request.body, request.headers)
        assert (verified["event"], verified["data"]["metadata"]) == (event, {"table": 4})
        assert request.headers["webhook-id"] == verified["event_id"]
    assert requests.get(code["qr_image_url"], timeout=60).status_code == 410


def test_a_declined_code_fails_and_the_shop_is_told(till: Till, listening: Receiver) -> None:
    code = till.qr_code()
    till.pay(code, "declined")
    assert till.wait_for_status(code, "failed")["failure_code"] == "declined_by_bank"
    told = wait_for_events(listening, code, "payment.failed")
    assert told["payment.failed"].json["data"]["status"] == "failed"


def test_a_repeated_callback_changes_nothing(stack: Stack, till: Till) -> None:
    code = till.qr_code()
    till.pay(code, "callback_repeated")
    till.wait_for_status(code, "succeeded")
    with psycopg.connect(stack.env["DATABASE_URL"], autocommit=True) as database:

        def count(sql: str) -> int:
            row = database.execute(sql, [code["payment_id"]]).fetchone()
            return int(row[0]) if row else 0

        notices = """SELECT count(*) FROM receipts_notice n JOIN receipts_receipt r ON r.id = n.receipt_id
                     WHERE r.payment_id = %s"""
        wait_until(lambda: count(notices) == 3, 60)
        assert count("SELECT count(*) FROM receipts_receipt WHERE payment_id = %s") == 1
        assert count("SELECT count(*) FROM transactions_transaction WHERE payment_id = %s") == 1


def test_money_with_an_unknown_reference_is_kept_for_staff(stack: Stack, till: Till) -> None:
    code = till.qr_code()
    transaction_id = till.pay(code, "unknown_reference")["bank_transaction_id"]
    with psycopg.connect(stack.env["DATABASE_URL"], autocommit=True) as database:
        sql = "SELECT outcome FROM receipts_receipt WHERE bank_transaction_id = %s AND outcome <> ''"
        wait_until(lambda: database.execute(sql, [transaction_id]).fetchone() == ("unmatched",), 60)
    assert till.get(f"/v1/payments/{code['payment_id']}")["status"] == "pending"


def test_a_hundred_identical_requests_at_once_make_one_payment(stack: Stack, till: Till) -> None:
    body, url = (
        {"amount": 4_200, "currency": "THB", "reference": "hundred"},
        f"{till.base_url}/Thai/v1/qr-codes",
    )
    headers = {"Authorization": f"Bearer {till.secret_key}", "Idempotency-Key": "hundred"}
    with ThreadPoolExecutor(100) as pool:
        answers = list(
            pool.map(lambda _: requests.post(url, json=body, headers=headers, timeout=60), range(100))
        )
    assert {answer.status_code for answer in answers} == {200}
    assert len({hashlib.sha256(answer.content).hexdigest() for answer in answers}) == 1
    assert sum("Idempotent-Replayed" not in answer.headers for answer in answers) == 1
    assert till.get("/Thai/v1/payments?reference=hundred")["total"] == 1


def test_without_redis_codes_are_made_and_paid_and_the_shop_is_told_at_last(
    stack: Stack, till: Till, listening: Receiver
) -> None:
    # Frozen, not killed: a dead one would be restarted within a second, and a hung one is the harder case.
    # A worker that was busy at that moment may still tell the shop; one that waits for the bell cannot.
    redis = stack.kill("valkey", signal.SIGSTOP)
    try:
        code = till.qr_code(reference="no redis")
        till.pay(code)
        till.wait_for_status(code, "succeeded")
    finally:
        os.kill(redis, signal.SIGCONT)
    wait_for_events(listening, code, "payment.pending", "payment.succeeded")


def test_killing_redis_before_a_code_is_made_loses_nothing(
    stack: Stack, till: Till, listening: Receiver
) -> None:
    stack.kill("valkey")
    code = till.qr_code()
    till.pay(code)
    till.wait_for_status(code, "succeeded")
    wait_for_events(listening, code, "payment.pending", "payment.succeeded")
