"""What the adapter makes of each answer of the bank to an inquiry, and of none."""

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
from core.slips import Slip
from tests import webhook_receiver
from tests.banks.test_sandbox import TOLD
from tests.webhook_receiver import Receiver, Reply

DOOR = "/sandbox/bank/v1/transactions"
UNTIL = datetime(2026, 11, 21, 3, 19, 5, 123_000, UTC)
QUESTION = InquiryRequest(
    "010555000000001", "ABCDEFGHJ01234567890", 150_000, UNTIL - timedelta(minutes=15, seconds=60), UNTIL
)
QUERY = (
    "biller_id=010555000000001&reference1=ABCDEFGHJ01234567890"
    "&since=2026-11-21T03%3A03%3A05.123Z&until=2026-11-21T03%3A19%3A05.123Z"
)
PAID = orjson.dumps({"transactions": [TOLD]})


@pytest.fixture
def bank() -> Iterator[Receiver]:
    with webhook_receiver.running_receiver() as door:
        yield door


@pytest.fixture
def adapter(bank: Receiver) -> Bank:
    return SandboxBank("the-secret", bank.base_url)


def found(adapter: Bank, bank: Receiver, body: bytes, status: int = 200) -> InquiryResult:
    bank.on(f"{DOOR}?{QUERY}", Reply(status, body=body))
    return adapter.inquire(QUESTION)


def test_inquiry_signature_covers_path_and_query(adapter: Bank, bank: Receiver) -> None:
    found(adapter, bank, PAID)
    (request_body,) = bank.requests
    assert (request_body.method, request_body.path, request_body.body) == ("GET", f"{DOOR}?{QUERY}", b"")
    at, _, given = request_body.headers["sandbox-bank-signature"].removeprefix("t=").partition(",v1=")
    assert given == hmac.digest(b"the-secret", f"{at}.GET {DOOR}?{QUERY}.".encode(), "sha256").hex()


def test_empty_inquiry_response_is_no_transactions(adapter: Bank, bank: Receiver) -> None:
    assert found(adapter, bank, b'{"transactions":[]}') == InquiryResult(b'{"transactions":[]}', ())


def test_inquiry_response_is_parsed_like_callback(adapter: Bank, bank: Receiver) -> None:
    both = orjson.dumps({"transactions": [TOLD, TOLD | {"type": "reversal"}]})
    response = found(adapter, bank, both)
    assert response.body == both
    assert [notification.kind for notification in response.transactions] == ["credit", "reversal"]
    assert response.transactions[0] == adapter.parse_notification(orjson.dumps(TOLD))


def one(**changes: Any) -> bytes:
    return orjson.dumps({"transactions": [TOLD | changes]})


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
        orjson.dumps({"transactions": [TOLD, TOLD | {"reference1": "OTHER"}]}),
    ],
)
def test_unreadable_response_keeps_body(adapter: Bank, bank: Receiver, body: bytes) -> None:
    with pytest.raises(UnreadableMessage) as refused:
        found(adapter, bank, body)
    assert refused.value.body == body


@pytest.mark.parametrize("status", [302, 400, 401, 404, 429, 500, 503])
def test_error_status_is_failed_inquiry(adapter: Bank, bank: Receiver, status: int) -> None:
    with pytest.raises(InquiryFailed, match=str(status)):
        found(adapter, bank, PAID, status)


SLIP = Slip(TOLD["payer_bank_code"], "202611210000000000000000A")
SLIP_DOOR = f"/sandbox/bank/v1/slips?sending_bank={SLIP.sending_bank}&reference={SLIP.transaction_id}"
SHOWN = TOLD | {"slip_reference": SLIP.transaction_id}


def of_slip(adapter: Bank, bank: Receiver, *shown: Any) -> SlipTransfer | None:
    bank.on(SLIP_DOOR, Reply(body=orjson.dumps({"transactions": shown})))
    assert isinstance(adapter, SlipLookup)
    return adapter.look_up_slip(SLIP)


def test_slip_lookup_finds_transfer_and_payee(adapter: Bank, bank: Receiver) -> None:
    shown = of_slip(adapter, bank, SHOWN, SHOWN | {"type": "reversal"})
    credit = adapter.parse_notification(orjson.dumps(SHOWN))
    assert shown is not None
    assert isinstance(credit, ReportedTransaction)
    assert (shown.amount, shown.transferred_at, shown.reference1) == (
        credit.amount,
        credit.paid_at,
        credit.reference1,
    )
    assert (shown.biller_id, shown.payee) == (credit.biller_id, f"biller {credit.biller_id}")


def test_slip_lookup_of_unknown_transfer_is_none(adapter: Bank, bank: Receiver) -> None:
    assert of_slip(adapter, bank) is None


@pytest.mark.parametrize(
    "changes", [{"slip_reference": "A1"}, {"payer_bank_code": "999"}, {"amount": "0.00"}]
)
def test_response_about_another_slip_is_unreadable(
    adapter: Bank, bank: Receiver, changes: dict[str, str]
) -> None:
    with pytest.raises(UnreadableMessage):
        of_slip(adapter, bank, SHOWN | changes)


def test_refused_connection_is_failed_inquiry() -> None:
    with pytest.raises(InquiryFailed):
        SandboxBank("the-secret", "http://127.0.0.1:1").inquire(QUESTION)


def test_timeout_is_failed_inquiry(adapter: Bank, bank: Receiver, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "READ_SECONDS", 0.05)
    bank.on(f"{DOOR}?{QUERY}", Reply(hangs=True))
    with pytest.raises(InquiryFailed):
        adapter.inquire(QUESTION)
