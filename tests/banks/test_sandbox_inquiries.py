"""Inquiries and slip lookups at the sandbox bank: each answer, a missing answer, and the real bank."""

import hmac
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest

from banks import sandbox
from banks.base import (
    Bank,
    InquiryFailed,
    InquiryRequest,
    InquiryResult,
    ReportedTransaction,
    SlipLookup,
    SlipTransfer,
    UnreadableMessage,
)
from banks.sandbox import SandboxBank
from core import clock
from core.thai.slips import Slip
from sandbox import services
from tests.banks.test_sandbox import NOTIFICATION
from tests.sandbox.conftest import payload
from tests.webhook_receiver import Receiver, Reply

UNTIL = datetime(2026, 11, 21, 3, 19, 5, 123_000, UTC)
INQUIRY = InquiryRequest(
    "010555000000001", "ABCDEFGHJ01234567890", 150_000, UNTIL - timedelta(minutes=15, seconds=60), UNTIL
)
URL = (
    "/sandbox/bank/v1/transactions?biller_id=010555000000001&reference1=ABCDEFGHJ01234567890"
    "&since=2026-11-21T03%3A03%3A05.123Z&until=2026-11-21T03%3A19%3A05.123Z"
)
PAID = orjson.dumps({"transactions": [NOTIFICATION]})


@pytest.fixture
def bank() -> Iterator[Receiver]:
    with Receiver.running() as bank:
        yield bank


@pytest.fixture
def adapter(bank: Receiver) -> Bank:
    return SandboxBank("the-secret", bank.base_url)


def found(adapter: Bank, bank: Receiver, body: bytes, status: int = 200) -> InquiryResult:
    bank.on(URL, Reply(status, body=body))
    return adapter.inquire(INQUIRY)


def test_inquiry_signature_covers_path_and_query(adapter: Bank, bank: Receiver) -> None:
    found(adapter, bank, PAID)
    (request,) = bank.requests
    assert (request.method, request.path, request.body) == ("GET", URL, b"")
    at, _, given = request.headers["sandbox-bank-signature"].removeprefix("t=").partition(",v1=")
    assert given == hmac.digest(b"the-secret", f"{at}.GET {URL}.".encode(), "sha256").hex()


def test_empty_inquiry_response_means_no_transactions(adapter: Bank, bank: Receiver) -> None:
    assert found(adapter, bank, b'{"transactions":[]}') == InquiryResult(b'{"transactions":[]}', ())


def test_inquiry_response_is_parsed_like_callback(adapter: Bank, bank: Receiver) -> None:
    both = orjson.dumps({"transactions": [NOTIFICATION, NOTIFICATION | {"type": "reversal"}]})
    response = found(adapter, bank, both)
    assert response.body == both
    assert [notification.kind for notification in response.transactions] == ["credit", "reversal"]
    assert response.transactions[0] == adapter.parse_notification(orjson.dumps(NOTIFICATION))


def one(**changes: Any) -> bytes:
    return orjson.dumps({"transactions": [NOTIFICATION | changes]})


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", PAID[:-9]])
def test_truncated_response_is_failed_inquiry(adapter: Bank, bank: Receiver, body: bytes) -> None:
    with pytest.raises(InquiryFailed):
        found(adapter, bank, body)


@pytest.mark.parametrize(
    "body",
    [
        b"{}",
        b'{"transactions":null}',
        b'{"transactions":{}}',
        b'{"transactions":["paid"]}',
        b'{"transactions":[{}]}',
        one(amount="0.00"),
        one(amount=1500),
        one(type="order"),
        one(paid_at="0001-01-01T00:00:00+07:00"),
        one(biller_id="010555000000002"),
        one(reference1="ABCDEFGHJ01234567891"),
        orjson.dumps({"transactions": [NOTIFICATION, NOTIFICATION | {"reference1": "OTHER"}]}),
    ],
)
def test_unreadable_inquiry_response_keeps_the_body(adapter: Bank, bank: Receiver, body: bytes) -> None:
    with pytest.raises(UnreadableMessage) as unreadable:
        found(adapter, bank, body)
    assert unreadable.value.body == body


@pytest.mark.parametrize("status", [302, 400, 401, 404, 429, 500, 503])
def test_http_error_status_is_a_failed_inquiry(adapter: Bank, bank: Receiver, status: int) -> None:
    with pytest.raises(InquiryFailed, match=str(status)):
        found(adapter, bank, PAID, status)


SLIP = Slip(NOTIFICATION["payer_bank_code"], "202611210000000000000000A")
SLIP_URL = f"/sandbox/bank/v1/slips?sending_bank={SLIP.sending_bank}&reference={SLIP.transaction_id}"
ON_SLIP = NOTIFICATION | {"slip_reference": SLIP.transaction_id}


def of_slip(adapter: Bank, bank: Receiver, *shown: Any) -> SlipTransfer | None:
    bank.on(SLIP_URL, Reply(body=orjson.dumps({"transactions": shown})))
    assert isinstance(adapter, SlipLookup)
    return adapter.look_up_slip(SLIP)


def test_slip_lookup_finds_transfer_and_payee(adapter: Bank, bank: Receiver) -> None:
    transfer = of_slip(adapter, bank, ON_SLIP, ON_SLIP | {"type": "reversal"})
    credit = adapter.parse_notification(orjson.dumps(ON_SLIP))
    assert transfer is not None
    assert isinstance(credit, ReportedTransaction)
    assert (transfer.amount, transfer.transferred_at) == (credit.amount, credit.paid_at)
    assert (transfer.reference1, transfer.biller_id) == (credit.reference1, credit.biller_id)
    assert transfer.payee == f"biller {credit.biller_id}"


def test_slip_lookup_of_unknown_transfer_is_none(adapter: Bank, bank: Receiver) -> None:
    assert of_slip(adapter, bank) is None


@pytest.mark.parametrize(
    "changes", [{"slip_reference": "A1"}, {"payer_bank_code": "999"}, {"amount": "0.00"}]
)
def test_response_about_another_slip_is_unreadable(
    adapter: Bank, bank: Receiver, changes: dict[str, str]
) -> None:
    with pytest.raises(UnreadableMessage):
        of_slip(adapter, bank, ON_SLIP | changes)


def test_refused_connection_is_a_failed_inquiry() -> None:
    with pytest.raises(InquiryFailed):
        SandboxBank("the-secret", "http://127.0.0.1:1").inquire(INQUIRY)


@pytest.mark.slow
def test_timeout_is_a_failed_inquiry(adapter: Bank, bank: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "READ_SECONDS", 0.05)
    bank.on(URL, Reply(hangs=True))
    with pytest.raises(InquiryFailed):
        adapter.inquire(INQUIRY)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_sandbox_bank_reports_payment_without_callback_over_http(live_server: Any, settings: Any) -> None:
    settings.BASE_URL, now, minute = live_server.url, clock.now(), timedelta(minutes=1)
    adapter = SandboxBank(settings.SANDBOX_BANK_SECRET, live_server.url)
    code = ("010555000000001", "ABCDEFGHJ01234567890", 150_000)
    inquiry = InquiryRequest(*code, now - minute, now + minute)
    assert adapter.inquire(inquiry).transactions == ()
    order = services.plan(qr_data=payload(), scenario="callback_lost", now=now)
    payment = services.execute(order, now=now)
    payer = (payment.payer_name, payment.payer_bank_code, payment.payer_account, payment.slip_reference)
    references = ("ABCDEFGHJ01234567890", "SHOP7", "T1")
    assert adapter.inquire(inquiry).transactions == (
        ReportedTransaction(payment.id, "credit", code[0], *references, 150_000, payment.paid_at, *payer),
    )
    assert adapter.look_up_slip(Slip(payment.payer_bank_code, payment.slip_reference)) == SlipTransfer(
        150_000, payment.paid_at, f"biller {code[0]}", code[0], *references
    )
    assert adapter.look_up_slip(Slip(payment.payer_bank_code, "A1")) is None
    with pytest.raises(InquiryFailed, match="401"):
        SandboxBank("another secret", live_server.url).inquire(inquiry)
