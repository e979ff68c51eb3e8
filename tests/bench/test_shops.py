"""The shops and the bank of a measurement: what they send, and what they accept."""

import json

import pytest

from banks.base import ReportedTransaction
from banks.sandbox import SandboxBank
from bench.shops import Bank, Shop, WrongWebhook
from core import clock, thaiqr
from webhooks import signing

SECRET = "only-for-tests-only-for-tests"
BILLER = "099400000000001"
REFERENCE = "ABCDEFGHIJ0123456789"
SHOP = Shop("mch_1", "tq_test_1", signing.new_secret(), "wh_1")


def webhook(
    payment_id: str, *, event: str = "payment.succeeded", signed: str = ""
) -> tuple[dict[str, str], bytes]:
    """A webhook of the service, with the signature of its body or of another text."""
    data = {"payment_id": payment_id, "status": "succeeded"}
    body = json.dumps({"event": event, "event_id": "evt_1", "data": data}).encode()
    headers = signing.headers(
        secrets=[SHOP.webhook_secret],
        message_id="evt_1",
        timestamp=int(clock.now().timestamp()),
        body=signed.encode() or body,
    )
    return headers, body


def test_service_reads_the_notification_of_the_bank() -> None:
    now = clock.now()
    qr_data = thaiqr.bill_payment(biller_id=BILLER, reference1=REFERENCE, amount=150_000)
    request, adapter = Bank(SECRET.encode()).notification(qr_data, now), SandboxBank(SECRET)
    adapter.verify(headers=request.headers, body=request.body, now=now)
    reported = adapter.parse_notification(request.body)
    assert isinstance(reported, ReportedTransaction)
    assert (reported.biller_id, reported.reference1, reported.amount) == (BILLER, REFERENCE, 150_000)
    assert reported.paid_at == now


def test_each_notification_is_about_another_bank_transaction() -> None:
    qr_data = thaiqr.bill_payment(biller_id=BILLER, reference1=REFERENCE, amount=150_000)
    bodies = [json.loads(Bank(b"secret").notification(qr_data, clock.now()).body) for _ in range(2)]
    assert bodies[0]["transaction_id"] != bodies[1]["transaction_id"]


def test_shop_accepts_a_webhook_that_the_service_signed() -> None:
    assert SHOP.paid_payment(*webhook("pay_1")) == "pay_1"


@pytest.mark.parametrize("wrong", [{"signed": "another body"}, {"event": "payment.failed"}])
def test_shop_refuses_a_wrong_webhook(wrong: dict[str, str]) -> None:
    with pytest.raises(WrongWebhook):
        SHOP.paid_payment(*webhook("pay_1", **wrong))


def test_request_has_the_length_of_its_body() -> None:
    request = SHOP.creation()
    head, _, body = request.to_bytes().partition(b"\r\n\r\n")
    assert head.startswith(b"POST /Thai/v1/qr-codes HTTP/1.1\r\nHost: ")
    assert f"Content-Length: {len(body)}".encode() in head.split(b"\r\n")
    assert body == request.body
