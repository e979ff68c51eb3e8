"""Inquiries and slip lookups at the sandbox bank."""

from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
import time_machine

from sandbox.models import MAX_ENTRIES, SandboxCallback, SandboxPayment
from tests.sandbox.conftest import BILLER, REFERENCE, error_of, pay, send_signed

pytestmark = pytest.mark.django_db
PATH = "/sandbox/bank/v1/transactions"
NOW = datetime(2026, 11, 21, 3, 0, tzinfo=UTC)
SLIPS_PATH = "/sandbox/bank/v1/slips"
CODE = {"biller_id": BILLER, "reference1": REFERENCE}
WINDOW = {"since": "2026-11-20T00:00:00Z", "until": "2026-11-23T00:00:00+07:00"}


@pytest.fixture(autouse=True)
def frozen_time() -> Any:
    with time_machine.travel(NOW, tick=False) as traveller:
        yield traveller


def inquire(**changes: str) -> Any:
    return send_signed("GET", f"{PATH}?{urlencode(CODE | WINDOW | changes)}")


def found(**changes: str) -> list[dict[str, str]]:
    response = inquire(**changes)
    assert response.status_code == 200, response.content
    transactions: list[dict[str, str]] = response.json()["transactions"]
    return transactions


def test_inquiry_of_an_unpaid_qr_code_is_empty() -> None:
    assert found() == []


def test_inquiry_shows_same_data_as_callback() -> None:
    payment = pay()
    assert found() == [
        {
            "transaction_id": payment.id,
            "type": "credit",
            "biller_id": "010555000000001",
            "reference1": "ABCDEFGHJ01234567890",
            "reference2": "SHOP7",
            "reference3": "T1",
            "amount": "1500.00",
            "currency": "THB",
            "paid_at": "2026-11-21T10:00:00.000+07:00",
            "payer_name": payment.payer_name,
            "payer_bank_code": payment.payer_bank_code,
            "payer_account": payment.payer_account,
            "slip_reference": payment.slip_reference,
        }
    ]


@pytest.mark.parametrize("scenario", ["callback_lost", "reported_late"])
def test_inquiry_finds_a_payment_without_callback_at_once(scenario: str) -> None:
    payment = pay(scenario)
    assert not SandboxCallback.objects.filter(due_at__lte=NOW).exists()
    assert [entry["transaction_id"] for entry in found()] == [payment.id]


def test_inquiry_finds_a_future_payment_only_from_paid_at(frozen_time: Any) -> None:
    pay("callback_lost", paid_at=NOW + timedelta(minutes=5))
    frozen_time.shift(timedelta(minutes=4))
    assert found() == []
    frozen_time.shift(timedelta(minutes=1))
    assert len(found()) == 1


@pytest.mark.parametrize(
    ("since", "until", "number"),
    [
        ("2026-11-21T02:00:00Z", "2026-11-21T02:59:59.999Z", 0),
        ("2026-11-21T02:00:00Z", "2026-11-21T03:05:00Z", 1),
        ("2026-11-22T03:01:00Z", "2026-11-22T04:00:00Z", 1),
        ("2026-11-22T03:01:00.001Z", "2026-11-22T04:00:00Z", 0),
    ],
)
def test_inquiry_finds_a_payment_reported_before_paid_at(since: str, until: str, number: int) -> None:
    """The bank reports at 03:00 a payment that is made at 03:01 on the next day."""
    pay("late")
    assert [each["paid_at"] for each in found(since=since, until=until)] == (
        ["2026-11-22T10:01:00.000+07:00"] * number
    )


def test_inquiry_finds_a_reversal_only_from_reversed_at(frozen_time: Any) -> None:
    pay("reversed")
    seen = []
    for _ in range(2):
        seen.append([entry["type"] for entry in found()])
        frozen_time.shift(timedelta(seconds=3))
    assert seen == [["credit"], ["credit", "reversal"]]


def test_inquiry_finds_a_declined_payment_as_decline() -> None:
    pay("declined")
    assert [entry["type"] for entry in found()] == ["decline"]


def test_inquiry_finds_both_payments_of_a_qr_code() -> None:
    pay("twice")
    assert len({entry["transaction_id"] for entry in found()}) == 2


@pytest.mark.parametrize("name", ["biller_id", "reference1"])
def test_inquiry_does_not_find_payments_of_another_qr_code(name: str) -> None:
    pay()
    assert found(**{name: CODE[name][:-1] + "9"}) == []


@pytest.mark.parametrize(
    ("since", "until", "number"),
    [
        ("2026-11-21T03:00:00Z", "2026-11-21T03:00:00Z", 1),
        ("2026-11-21T10:00:00.000+07:00", "2026-11-21T10:00:01+07:00", 1),
        ("2026-11-21T03:00:00.001Z", "2026-11-22T03:00:00Z", 0),
        ("2026-11-20T03:00:00Z", "2026-11-21T02:59:59.999Z", 0),
        ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999Z", 1),
        ("0001-01-01T00:00:00+07:00", "9999-12-31T23:59:59-07:00", 1),
        ("2026-11-21T03:00:00", "2026-11-21T10:00:00+0700", 1),
    ],
)
def test_inquiry_window_is_inclusive(since: str, until: str, number: int) -> None:
    pay()
    assert len(found(since=since, until=until)) == number


@pytest.mark.slow
def test_inquiry_returns_oldest_hundred() -> None:
    for number in range(MAX_ENTRIES + 1):
        pay(paid_at=NOW - timedelta(minutes=number))
    shown = found()
    assert len(shown) == MAX_ENTRIES
    assert shown[0]["paid_at"] < shown[-1]["paid_at"] < "2026-11-21T10:00"


MALFORMED_PARAMETERS: dict[str, list[Any]] = {
    "biller_id": ["", "12345", "010555000000001\n", "๐" * 15],
    "reference1": ["", "A" * 36, "A\x00", "ก"],
    "since": ["", "2026-11-21", "2569-11-21T10:00:00Z", "2026-11-24T00:00:00Z"],
    "until": ["tomorrow", "10000-01-01T00:00:00Z"],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in MALFORMED_PARAMETERS.items() for value in values]
)
def test_malformed_inquiry_parameter_is_named(name: str, value: str) -> None:
    assert error_of(inquire(**{name: value})) == (400, "invalid_parameters", name)


@pytest.mark.parametrize("name", [*CODE, *WINDOW])
def test_inquiry_parameters_are_required_once(name: str) -> None:
    shown = CODE | WINDOW
    less = urlencode({field: value for field, value in shown.items() if field != name})
    for query in (less, f"{urlencode(shown)}&{urlencode({name: shown[name]})}"):
        assert error_of(send_signed("GET", f"{PATH}?{query}")) == (400, "invalid_parameters", name)


def of_slip(payment: SandboxPayment, **changes: str) -> Any:
    named = {"sending_bank": payment.payer_bank_code, "reference": payment.slip_reference}
    return send_signed("GET", f"{SLIPS_PATH}?{urlencode(named | changes)}")


def test_slip_query_finds_transfer() -> None:
    payment, other = pay("callback_lost"), pay()
    shown = of_slip(payment).json()["transactions"]
    assert [(each["transaction_id"], each["type"]) for each in shown] == [(payment.id, "credit")]
    assert of_slip(payment, sending_bank="999").json() == {"transactions": []}
    assert other.slip_reference != payment.slip_reference


def test_slip_query_of_future_payment_finds_nothing(frozen_time: Any) -> None:
    payment = pay("callback_lost", paid_at=NOW + timedelta(minutes=5))
    assert of_slip(payment).json() == {"transactions": []}
    frozen_time.shift(timedelta(minutes=5))
    assert len(of_slip(payment).json()["transactions"]) == 1


def test_declined_payment_has_no_slip_entry() -> None:
    assert of_slip(pay("declined")).json() == {"transactions": []}


@pytest.mark.parametrize(
    ("name", "value"),
    [("sending_bank", "14"), ("reference", ""), ("reference", "A" * 26), ("reference", "ก")],
)
def test_malformed_slip_parameter_is_named(name: str, value: str) -> None:
    assert error_of(of_slip(pay(), **{name: value})) == (400, "invalid_parameters", name)
