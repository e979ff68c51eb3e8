import hmac
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, strategies as st

from banks.base import InvalidSignature, ReportedTransaction, ReportedTransfer, UnreadableMessage
from banks.sandbox import SandboxBank

SECRET = "the-secret-that-both-sides-know"
NOW = datetime(2026, 11, 21, 3, 4, 5, 678_000, UTC)
BANK = SandboxBank(SECRET)
NOTIFICATION: dict[str, Any] = {
    "transaction_id": "sbp_0Kq1vJZ3d8rT5wY7uI9oP2aS4dF",
    "type": "credit",
    "biller_id": "010555000000001",
    "reference1": "ABCDEFGHJ01234567890",
    "reference2": "SHOP7",
    "reference3": "",
    "amount": "1500.00",
    "currency": "THB",
    "paid_at": "2026-11-21T10:04:05.123+07:00",
    "payer_name": "สมชาย ใจดี",
    "payer_bank_code": "014",
    "payer_account": "4051234567",
}


def body(**changes: Any) -> bytes:
    return json.dumps(NOTIFICATION | changes).encode()


def read(sent: bytes) -> ReportedTransaction:
    notification = BANK.parse_notification(sent)
    assert isinstance(notification, ReportedTransaction)
    return notification


def signed(sent: bytes, at: datetime = NOW, secret: str = SECRET) -> dict[str, str]:
    seconds = str(int(at.timestamp()))
    signature = hmac.digest(secret.encode(), seconds.encode() + b"." + sent, "sha256").hex()
    return {"Sandbox-Bank-Signature": f"t={seconds},v1={signature}"}


def test_notification_is_parsed_into_satang_and_utc() -> None:
    assert BANK.parse_notification(body()) == ReportedTransaction(
        bank_reference="sbp_0Kq1vJZ3d8rT5wY7uI9oP2aS4dF",
        kind="credit",
        biller_id="010555000000001",
        reference1="ABCDEFGHJ01234567890",
        reference2="SHOP7",
        reference3="",
        amount=150_000,
        paid_at=datetime(2026, 11, 21, 3, 4, 5, 123_000, UTC),
        payer_name="สมชาย ใจดี",
        payer_bank_code="014",
        payer_account="4051234567",
    )


@pytest.mark.parametrize("kind", ["credit", "decline", "reversal"])
def test_every_notification_type_is_parsed(kind: str) -> None:
    assert read(body(type=kind)).kind == kind


@pytest.mark.parametrize("slip", ["", "202611210Fs6joxJrXDrbJqT5", "20261121ABCDEFG"])
def test_slip_reference_is_parsed_if_present(slip: str) -> None:
    assert read(body(slip_reference=slip)).slip_reference == slip
    assert read(body()).slip_reference == ""


@pytest.mark.parametrize("slip", ["2026112", "A" * 26, "20261121-ABCDEFGH", "20261121ABCDEFGก", None, 17])
def test_malformed_slip_reference_is_unreadable(slip: Any) -> None:
    with pytest.raises(UnreadableMessage, match="slip_reference"):
        BANK.parse_notification(body(slip_reference=slip))


def test_unknown_notification_fields_are_ignored() -> None:
    assert BANK.parse_notification(body(channel="PMH")) == BANK.parse_notification(body())


def test_payment_time_without_milliseconds_is_parsed() -> None:
    notification = read(body(paid_at="2026-11-21T10:04:05+07:00"))
    assert notification.paid_at == datetime(2026, 11, 21, 3, 4, 5, tzinfo=UTC)


def test_notification_with_a_missing_field_is_unreadable() -> None:
    for name in list(NOTIFICATION):
        shown = {field: value for field, value in NOTIFICATION.items() if field != name}
        with pytest.raises(UnreadableMessage, match=name):
            BANK.parse_notification(json.dumps(shown).encode())


MALFORMED_FIELDS: dict[str, list[Any]] = {
    "transaction_id": ["", "x" * 65, 17],
    "type": ["refund", "Credit"],
    "biller_id": ["01055500000001", "๐๑๐๕๕๕๐๐๐๐๐๐๐๐๑"],
    "reference1": ["", "A" * 36, "A\nB"],
    "reference2": [None],
    "amount": [1500, 1500.0, "1500.0", "1,500.00", "-1500.00", "0.00", "1e3", "99999999999.00"],
    "currency": ["USD"],
    "paid_at": [
        "2026-11-21T10:04:05Z",
        "2026-11-21T10:04:05",
        "2026-13-21T10:04:05+07:00",
        "0001-01-01T00:00:00+07:00",
        1795230245,
    ],
    "payer_name": ["ก" * 141, "half \ud83d", "SOMCHAI\rJAIDEE", "SOMCHAI\x1b[2JJAIDEE", "SOMCHAI\x85JAIDEE"],
    "payer_bank_code": ["14"],
    "payer_account": ["405-1-23456-7"],
}


def test_notification_with_a_malformed_field_is_unreadable() -> None:
    for name, value in [(name, value) for name, values in MALFORMED_FIELDS.items() for value in values]:
        with pytest.raises(UnreadableMessage):
            BANK.parse_notification(body(**{name: value}))


@pytest.mark.parametrize("sent", [b"", b"[]", b"null", b"{", b"\xff", b'{"type": 1, "type": 1}'])
def test_notification_that_is_not_a_json_object_is_unreadable(sent: bytes) -> None:
    with pytest.raises(UnreadableMessage):
        BANK.parse_notification(sent)


@pytest.mark.parametrize("minutes", [-5, 0, 5])
def test_notification_signature_is_valid_for_five_minutes(minutes: int) -> None:
    at = NOW.replace(microsecond=0)
    BANK.verify(headers=signed(body(), at), body=body(), now=at + timedelta(minutes=minutes))


@pytest.mark.parametrize("seconds", [-301, 301])
def test_signature_older_or_newer_than_five_minutes_is_refused(seconds: int) -> None:
    at = NOW.replace(microsecond=0)
    with pytest.raises(InvalidSignature):
        BANK.verify(headers=signed(body(), at), body=body(), now=at + timedelta(seconds=seconds))


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Sandbox-Bank-Signature": ""},
        signed(body(amount="1.00")),
        signed(body(), secret="another secret"),
        {name: value.upper() for name, value in signed(body()).items()},
        {name: f"{value},{value}" for name, value in signed(body()).items()},
        {name: value.replace("t=1", "t=2") for name, value in signed(body()).items()},
        {name: value.replace("v1=", "v1=๑") for name, value in signed(body()).items()},
    ],
)
def test_invalid_signature_is_refused(headers: dict[str, str]) -> None:
    with pytest.raises(InvalidSignature):
        BANK.verify(headers=headers, body=body(), now=NOW)


@given(st.text(alphabet="0123456789.-+T:Z ", max_size=35))
def test_arbitrary_payment_time_is_parsed_or_unreadable(paid_at: str) -> None:
    try:
        BANK.parse_notification(body(paid_at=paid_at))
    except UnreadableMessage:
        return


ORDER: dict[str, Any] = {
    "type": "order",
    "reference": "wd_0Kq1vJZ3d8rT5wY7uI9oP2aS4dF",
    "bank_reference": "sbo_0Kq1vJZ3d8rT5wY7uI9oP2aS4dF",
    "amount": "1500.00",
    "currency": "THB",
    "status": "returned",
    "reason": "account_closed",
}


@pytest.mark.parametrize(
    ("status", "reason", "code"),
    [
        ("succeeded", "", ""),
        ("failed", "account_not_found", "invalid_account"),
        ("failed", "sanctions", "rejected_by_bank"),
        ("returned", "account_closed", "returned_by_bank"),
    ],
)
def test_order_notification_is_parsed(status: str, reason: str, code: str) -> None:
    sent = json.dumps(ORDER | {"status": status, "reason": reason}).encode()
    notification = BANK.parse_notification(sent)
    assert isinstance(notification, ReportedTransfer)
    assert (notification.order_id, notification.reference) == (ORDER["reference"], ORDER["bank_reference"])
    assert (notification.status, notification.failure_code) == (status, code)
    assert BANK.acknowledge(notification) == {"status": "received"}


MALFORMED_ORDER_FIELDS: dict[str, list[Any]] = {
    "reference": ["", None, "wd 17"],
    "bank_reference": ["x" * 65],
    "amount": [1500],
    "currency": ["USD"],
    "status": ["processing", "lost"],
    "reason": ["DROP TABLE"],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in MALFORMED_ORDER_FIELDS.items() for value in values]
)
def test_malformed_order_notification_is_unreadable(name: str, value: Any) -> None:
    with pytest.raises(UnreadableMessage):
        BANK.parse_notification(json.dumps(ORDER | {name: value}).encode())


def test_acknowledgement_status_is_received_or_held() -> None:
    assert BANK.acknowledge(BANK.parse_notification(body())) == {"status": "received"}
    assert BANK.acknowledge(None) == {"status": "held"}
