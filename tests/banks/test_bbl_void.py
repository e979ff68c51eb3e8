"""Bangkok Bank takes a payment back: whole, on its day, until 23:00."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime

import pytest
import time_machine

import banks
from banks import Order, UnknownBank, Word
from tests.banks.bbl_stand_in import (
    BILLER,
    CHARGE,
    INQUIRY,
    PUSH,
    REFERENCE,
    TOKENS,
    VOID,
    BblStandIn,
    opened,
    said,
)
from tests.receiver import Reply

AFTERNOON = datetime(2026, 11, 21, 8, 0, tzinfo=UTC)
ORDER = Order(
    order_id="ref_0oDFPh3pEwVnYw5cJm8qTzLxKd2",
    purpose="refund",
    amount=150_000,
    bank_code="",
    account="",
    account_name="",
    charge_id=CHARGE,
)
CLOSED = Word("failed", failure_code="void_window_closed")
REJECTED = Word("failed", failure_code="rejected_by_bank")
DONE = Word("succeeded", CHARGE)


@pytest.fixture
def bank() -> Iterator[BblStandIn]:
    with opened() as stand_in:
        stand_in.on(INQUIRY, said(**PUSH))
        stand_in.on(VOID, said())
        yield stand_in


@pytest.fixture(autouse=True)
def afternoon() -> Iterator[None]:
    with time_machine.travel(AFTERNOON, tick=True):
        yield


def send(bank: BblStandIn, order: Order = ORDER) -> Word:
    return banks.sender("bank:bbl", bank.link).send(order)


def inquire(bank: BblStandIn) -> Word:
    return banks.sender("bank:bbl", bank.link).inquire(ORDER)


def test_a_payment_of_the_day_is_taken_back_by_its_time_and_approval_code(bank: BblStandIn) -> None:
    assert send(bank) == DONE
    (asked,) = bank.to(VOID)
    assert asked.json == {
        "billerId": BILLER,
        "reference1": REFERENCE,
        "reference2": "0011",
        "transDate": "2026-11-21",
        "transTime": "11:04:39",
        "approvalCode": "052447",
        "amount": "1500.00",
    }


@pytest.mark.parametrize(
    ("now", "word"),
    [
        (datetime(2026, 11, 20, 16, 59, 59, tzinfo=UTC), CLOSED),
        (datetime(2026, 11, 20, 17, 0, 0, tzinfo=UTC), DONE),
        (datetime(2026, 11, 21, 15, 59, 58, tzinfo=UTC), DONE),
        (datetime(2026, 11, 21, 16, 0, 0, tzinfo=UTC), CLOSED),
        (datetime(2026, 11, 22, 5, 0, 0, tzinfo=UTC), CLOSED),
    ],
)
def test_the_window_is_the_day_of_payment_in_bangkok_until_23(
    bank: BblStandIn, now: datetime, word: Word
) -> None:
    with time_machine.travel(now, tick=False):
        assert send(bank) == word
    assert (bank.receiver.requests == []) == (word == CLOSED)


@pytest.mark.parametrize(
    "charge_id", ["", "x", "20261121", "20261121.A", "20261121..x", "20261321.A.b", "chrg_1"]
)
def test_an_id_that_this_bank_did_not_give_is_not_asked_about(bank: BblStandIn, charge_id: str) -> None:
    assert send(bank, replace(ORDER, charge_id=charge_id)) == CLOSED
    assert bank.receiver.requests == []


@pytest.mark.parametrize(
    "answer",
    [said("209"), said(**PUSH | {"bankRef": "another"}), said(**PUSH | {"amount": "1500.01"})],
    ids=["unknown", "another payment", "another amount"],
)
def test_what_the_bank_does_not_know_as_we_do_is_not_taken_back(bank: BblStandIn, answer: Reply) -> None:
    bank.on(INQUIRY, answer)
    assert send(bank) == REJECTED
    assert bank.to(VOID) == []


def test_what_is_void_already_is_not_sent_again(bank: BblStandIn) -> None:
    bank.on(INQUIRY, said(**PUSH | {"txnType": "D"}))
    assert send(bank) == DONE
    assert bank.to(VOID) == []


@pytest.mark.parametrize("path", [TOKENS, INQUIRY])
@pytest.mark.parametrize(
    "reply", [Reply(closes=True), Reply(500, body=b"{}"), Reply(body=b"<html>"), said("888")]
)
def test_what_fails_before_the_void_was_surely_not_sent(bank: BblStandIn, path: str, reply: Reply) -> None:
    bank.on(path, reply)
    assert send(bank) == Word("not_sent")
    assert bank.to(VOID) == []


@pytest.mark.parametrize(
    ("reply", "word"),
    [
        (said("211"), REJECTED),
        (said("331"), REJECTED),
        (Reply(400, body=b'{"responseCode": "213"}'), REJECTED),
        (Reply(403, body=b"{}"), Word("not_sent")),
        (Reply(429, body=b"{}"), Word("not_sent")),
        (said("210"), Word("unknown")),
        (said("888"), Word("unknown")),
        (said(""), Word("unknown")),
        (Reply(500, body=b'{"responseCode": "000"}'), Word("unknown")),
        (Reply(body=b"<html>"), Word("unknown")),
        (Reply(closes=True), Word("unknown")),
    ],
)
def test_only_a_clear_answer_ends_a_void(bank: BblStandIn, reply: Reply, word: Word) -> None:
    bank.on(VOID, reply)
    assert send(bank) == word


@pytest.mark.parametrize(
    ("reply", "word"),
    [
        (said(**PUSH | {"txnType": "D"}), DONE),
        (said(**PUSH), Word("unknown")),
        (said("209"), Word("unknown")),
        (said("888"), Word("unknown")),
        (said(**PUSH | {"txnType": "D", "bankRef": "another"}), Word("unknown")),
        (Reply(closes=True), Word("unknown")),
    ],
)
def test_an_inquiry_believes_only_that_it_is_void(bank: BblStandIn, reply: Reply, word: Word) -> None:
    bank.on(INQUIRY, reply)
    assert inquire(bank) == word
    assert bank.to(VOID) == []


def test_only_linked_merchants_of_this_bank_have_it(bank: BblStandIn) -> None:
    at_scb = replace(bank.link, bank="scb")
    for route, link in (("bank:bbl", None), ("bank:bbl", at_scb), ("bank:scb", at_scb)):
        with pytest.raises(UnknownBank):
            banks.sender(route, link)
