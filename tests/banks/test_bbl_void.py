"""Bangkok Bank voids whole payments on their day, until 23:00."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest
import time_machine

import banks
from banks import TransferOrder, TransferResult, UnknownBank
from tests.banks.fake_bbl import (
    BILLER,
    CHARGE,
    INQUIRY,
    PUSH,
    REFERENCE,
    TOKENS,
    VOID,
    FakeBbl,
    response,
)
from tests.webhook_receiver import Reply

AFTERNOON = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
ORDER = TransferOrder(
    order_id="ref_0oDFPh3pEwVnYw5cJm8qTzLxKd2",
    purpose="refund",
    amount=150_000,
    bank_code="",
    account="",
    account_name="",
    charge_id=CHARGE,
)
CLOSED = TransferResult("failed", failure_code="void_window_closed")
REJECTED = TransferResult("failed", failure_code="void_rejected")
DONE = TransferResult("succeeded", CHARGE)


@pytest.fixture
def bank() -> Iterator[FakeBbl]:
    with FakeBbl.running() as bank:
        bank.on(INQUIRY, response(**PUSH))
        bank.on(VOID, response())
        yield bank


@pytest.fixture(autouse=True)
def afternoon() -> Iterator[None]:
    with time_machine.travel(AFTERNOON, tick=True):
        yield


def send(bank: FakeBbl, order: TransferOrder = ORDER) -> TransferResult:
    return banks.sender("bank:bbl", bank.config).send(order)


def inquire(bank: FakeBbl) -> TransferResult:
    return banks.sender("bank:bbl", bank.config).inquire(ORDER)


def test_void_names_payment_by_time_and_approval_code(bank: FakeBbl) -> None:
    assert send(bank) == DONE
    (request,) = bank.to(VOID)
    assert request.json == {
        "billerId": BILLER,
        "reference1": REFERENCE,
        "reference2": "0011",
        "transDate": "2026-11-21",
        "transTime": "11:04:39",
        "approvalCode": "052447",
        "amount": "1500.00",
    }


@pytest.mark.parametrize(
    ("now", "result"),
    [
        (datetime(2026, 11, 20, 16, 59, 59, tzinfo=UTC), CLOSED),
        (datetime(2026, 11, 20, 17, 0, 0, tzinfo=UTC), DONE),
        (datetime(2026, 11, 21, 15, 59, 58, tzinfo=UTC), DONE),
        (datetime(2026, 11, 21, 16, 0, 0, tzinfo=UTC), CLOSED),
        (datetime(2026, 11, 22, 5, 0, 0, tzinfo=UTC), CLOSED),
    ],
)
def test_void_window_is_day_of_payment_in_bangkok_until_23(
    bank: FakeBbl, now: datetime, result: TransferResult
) -> None:
    with time_machine.travel(now, tick=False):
        assert send(bank) == result
    assert (bank.requests == []) == (result == CLOSED)


@pytest.mark.parametrize(
    "charge_id", ["", "x", "20261121", "20261121.A", "20261121..x", "20261321.A.b", "chrg_1"]
)
def test_void_of_foreign_transaction_id_makes_no_request(bank: FakeBbl, charge_id: str) -> None:
    assert send(bank, replace(ORDER, charge_id=charge_id)) == CLOSED
    assert bank.requests == []


@pytest.mark.parametrize(
    "response",
    [response("209"), response(**PUSH | {"bankRef": "another"}), response(**PUSH | {"amount": "1500.01"})],
    ids=["unknown", "another payment", "another amount"],
)
def test_void_of_payment_that_bank_reports_differently_is_rejected(bank: FakeBbl, response: Reply) -> None:
    bank.on(INQUIRY, response)
    assert send(bank) == REJECTED
    assert bank.to(VOID) == []


def test_payment_that_is_void_is_not_voided_again(bank: FakeBbl) -> None:
    bank.on(INQUIRY, response(**PUSH | {"txnType": "D"}))
    assert send(bank) == DONE
    assert bank.to(VOID) == []


@pytest.mark.parametrize("path", [TOKENS, INQUIRY])
@pytest.mark.parametrize(
    "reply", [Reply(closes=True), Reply(500, body=b"{}"), Reply(body=b"<html>"), response("888")]
)
def test_failure_before_void_request_is_not_sent(bank: FakeBbl, path: str, reply: Reply) -> None:
    bank.on(path, reply)
    assert send(bank) == TransferResult("not_sent")
    assert bank.to(VOID) == []


@pytest.mark.parametrize(
    ("reply", "result"),
    [
        (response("211"), REJECTED),
        (response("331"), REJECTED),
        (Reply(400, body=b'{"responseCode": "213"}'), REJECTED),
        (Reply(403, body=b"{}"), TransferResult("not_sent")),
        (Reply(429, body=b"{}"), TransferResult("not_sent")),
        (response("210"), TransferResult("unknown")),
        (response("888"), TransferResult("unknown")),
        (response(""), TransferResult("unknown")),
        (Reply(500, body=b'{"responseCode": "000"}'), TransferResult("unknown")),
        (Reply(body=b"<html>"), TransferResult("unknown")),
        (Reply(closes=True), TransferResult("unknown")),
    ],
)
def test_void_without_clear_response_is_unknown(bank: FakeBbl, reply: Reply, result: TransferResult) -> None:
    bank.on(VOID, reply)
    assert send(bank) == result


@pytest.mark.parametrize(
    ("reply", "result"),
    [
        (response(**PUSH | {"txnType": "D"}), DONE),
        (response(**PUSH), TransferResult("unknown")),
        (response("209"), TransferResult("unknown")),
        (response("888"), TransferResult("unknown")),
        (response(**PUSH | {"txnType": "D", "bankRef": "another"}), TransferResult("unknown")),
        (Reply(closes=True), TransferResult("unknown")),
    ],
)
def test_inquiry_of_void_reports_success_or_unknown(
    bank: FakeBbl, reply: Reply, result: TransferResult
) -> None:
    bank.on(INQUIRY, reply)
    assert inquire(bank) == result
    assert bank.to(VOID) == []


def test_void_without_bbl_connection_is_refused(bank: FakeBbl) -> None:
    at_scb = replace(bank.config, bank="scb")
    for route, config in (("bank:bbl", None), ("bank:bbl", at_scb), ("bank:scb", at_scb)):
        with pytest.raises(UnknownBank):
            banks.sender(route, config)
