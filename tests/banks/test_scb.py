"""Siam Commercial Bank: its confirmations, and what it is asked."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import banks
from banks import NotAnswered, Notice, Question, Unreadable, oauth
from banks.scb import Scb
from tests.banks.scb_stand_in import (
    BILLER,
    CONFIRMATION,
    LINK,
    REFERENCE,
    ScbStandIn,
    confirmation,
    granted,
    opened,
    refused,
    success,
    transaction,
)
from tests.receiver import Reply

NOON = datetime(2026, 11, 21, 5, 0, tzinfo=UTC)
SCB = Scb(LINK)
PAID = Notice(
    bank_transaction_id="201907169lbqgPbt1Bl3oiA",
    kind="credit",
    biller_id=BILLER,
    reference1=REFERENCE,
    reference2="SHOP7",
    reference3="PTF",
    amount=150_000,
    paid_at=datetime(2026, 11, 21, 4, 30, 58, tzinfo=UTC),
    payer_name="สุศิริณี นุเช็ค",
    payer_bank_code="014",
    payer_account="0123456789",
)


@pytest.fixture
def bank() -> Iterator[ScbStandIn]:
    with opened() as stand_in:
        yield stand_in


def question(since: str = "2026-11-21T05:00:00", until: str = "2026-11-21T05:15:00") -> Question:
    """UTC."""
    ends = [datetime.fromisoformat(end).replace(tzinfo=UTC) for end in (since, until)]
    return Question(BILLER, REFERENCE, 150_000, *ends)


def ask(bank: ScbStandIn, asked: Question | None = None) -> banks.Found:
    return banks.get("scb", bank.link).inquire(asked or question())


def test_a_confirmation_is_read_into_satang_and_utc() -> None:
    assert SCB.parse_notice(confirmation()) == PAID


@pytest.mark.parametrize(
    ("written", "satang"),
    [
        ('"1500.00"', 150_000),
        ('"1500"', 150_000),
        ('"1500.5"', 150_050),
        ("1500", 150_000),
        ("1500.5", 150_050),
        ("1500.00", 150_000),
        ("0.29", 29),
        ("1.15", 115),
        ("1234567.89", 123_456_789),
        ('"9007199254.99"', 900_719_925_499),
        ("9999999999.99", 999_999_999_999),
    ],
)
def test_an_amount_may_be_text_or_number_and_is_always_exact(written: str, satang: int) -> None:
    body = confirmation().replace(b'"1500.00"', written.encode())
    assert SCB.parse_notice(body).amount == satang


@pytest.mark.parametrize(
    "written",
    ["0", '"0.00"', "-1", '"-1.00"', "true", "null", '""', '"1,500.00"', "1500.005", "1e3", "NaN",
     '"1500.005"', "1E-999999999", '"๑๕๐๐"', "01500", '" 1500"', "99999999999.99", '"+1"', "[1500]"],
)  # fmt: skip
def test_an_amount_that_is_none_is_unreadable(written: str) -> None:
    with pytest.raises(Unreadable):
        SCB.parse_notice(confirmation().replace(b'"1500.00"', written.encode()))


@pytest.mark.parametrize(
    ("told", "instant"),
    [
        ("2026-11-21T11:30:58.664+07:00", datetime(2026, 11, 21, 4, 30, 58, 664_000, UTC)),
        ("2026-11-21T00:00:01+07:00", datetime(2026, 11, 20, 17, 0, 1, tzinfo=UTC)),
        ("2026-11-21T04:30:58+00:00", datetime(2026, 11, 21, 4, 30, 58, tzinfo=UTC)),
    ],
)
def test_times_carry_their_offset(told: str, instant: datetime) -> None:
    assert SCB.parse_notice(confirmation(transactionDateandTime=told)).paid_at == instant


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("transactionId", None),
        ("transactionId", ""),
        ("transactionId", "x" * 65),
        ("transactionId", 17),
        ("payeeProxyId", None),
        ("payeeProxyId", "010555000000001"),
        ("billPaymentRef1", ""),
        ("billPaymentRef1", "A" * 21),
        ("billPaymentRef2", "A" * 21),
        ("billPaymentRef3", ["PTF"]),
        ("currencyCode", "840"),
        ("transactionDateandTime", "2026-11-21T11:30:58"),
        ("transactionDateandTime", "2026-13-21T11:30:58+07:00"),
        ("transactionDateandTime", "0001-01-01T00:00:00+07:00"),
        ("transactionDateandTime", "20261121 11:30:58"),
    ],
)
def test_what_decides_about_the_money_must_be_well_formed(name: str, value: Any) -> None:
    with pytest.raises(Unreadable):
        SCB.parse_notice(confirmation(**{name: value}))


@pytest.mark.parametrize(
    ("name", "field", "values"),
    [
        ("payerName", "payer_name", [None, "", 7, "ก" * 141, "two\nlines", "a\tb", "\x7f"]),
        ("sendingBankCode", "payer_bank_code", [None, "", "14", 14]),
        ("payerAccountNumber", "payer_account", [None, "", 123, "1" * 36, "1 2"]),
        ("billPaymentRef2", "reference2", [None, ""]),
        ("fastEasySlipNumber", "slip_reference", [None, "", "x" * 26]),
    ],
)
def test_what_is_only_good_to_know_holds_up_no_money(name: str, field: str, values: list[Any]) -> None:
    left_out: dict[str, Any] = {field: ""}
    for value in values:
        assert SCB.parse_notice(confirmation(**{name: value})) == replace(PAID, **left_out)


def test_the_bank_is_answered_as_its_document_says() -> None:
    expected = {"resCode": "00", "resDesc": "success", "transactionId": PAID.bank_transaction_id}
    assert SCB.answer(PAID) == expected


@pytest.mark.parametrize(
    ("body", "echo"),
    [
        (confirmation(amount="no"), "201907169lbqgPbt1Bl3oiA"),
        (confirmation(payeeProxyId="010555000000001"), "201907169lbqgPbt1Bl3oiA"),
        (confirmation(transactionId=17), ""),
        (b"{}", ""),
        (b"", ""),
        (b"\xff", ""),
        (b'{"transactionId": "1", "transactionId": "2"}', ""),
    ],
)
def test_the_answer_repeats_the_id_of_what_is_parked_too(body: bytes, echo: str) -> None:
    with pytest.raises(Unreadable) as parked:
        SCB.parse_notice(body)
    assert parked.value.answer == {"resCode": "00", "resDesc": "success", "transactionId": echo}


@given(st.binary())
def test_any_bytes_are_unreadable_and_never_a_fault(sent: bytes) -> None:
    with pytest.raises(Unreadable):
        SCB.parse_notice(sent)


VALUES = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text(), max_size=2)


@given(st.dictionaries(st.sampled_from(list(CONFIRMATION)), VALUES))
def test_any_values_are_read_or_unreadable(changes: dict[str, Any]) -> None:
    try:
        notice = SCB.parse_notice(confirmation(**changes))
    except Unreadable:
        return
    assert notice.amount > 0
    assert notice.biller_id == BILLER


def test_a_code_that_nobody_paid_is_answered_with_nothing(bank: ScbStandIn) -> None:
    bank.knows("2026-11-21", success([]))
    found = ask(bank)
    assert found.notices == ()
    assert json.loads(found.body)["data"] == []


@pytest.mark.parametrize("reply", [success(None), refused(404, 1104)])
def test_no_list_at_all_is_nothing_too(bank: ScbStandIn, reply: Reply) -> None:
    bank.knows("2026-11-21", reply)
    assert ask(bank).notices == ()


def test_a_payment_is_found_as_its_confirmation_told_it(bank: ScbStandIn) -> None:
    bank.knows("2026-11-21", success([transaction()]))
    assert ask(bank).notices == (replace(PAID, slip_reference="232815519467"),)


def test_a_code_of_an_earlier_biller_id_is_still_asked_about(bank: ScbStandIn) -> None:
    bank.knows("2026-11-21", success([transaction()]))
    moved = replace(bank.link, biller_id="010555000000001")
    (notice,) = banks.get("scb", moved).inquire(question()).notices
    assert notice.biller_id == BILLER


def test_several_payments_of_one_code_are_all_found(bank: ScbStandIn) -> None:
    second = transaction(transactionId="second", amount=2.5)
    bank.knows("2026-11-21", success([transaction(), second]))
    assert [(each.bank_transaction_id, each.amount) for each in ask(bank).notices] == [
        (PAID.bank_transaction_id, 150_000),
        ("second", 250),
    ]


def test_money_that_went_back_is_found_as_two_words(bank: ScbStandIn) -> None:
    bank.knows("2026-11-21", success([transaction(reverseFlag="R")]))
    credit, reversal = ask(bank).notices
    assert (credit.kind, reversal.kind) == ("credit", "reversal")
    assert credit == replace(reversal, kind="credit")


@pytest.mark.parametrize(
    ("since", "until", "days"),
    [
        ("2026-11-21T05:00:00", "2026-11-21T05:15:00", ["2026-11-21"]),
        ("2026-11-21T16:50:00", "2026-11-21T17:05:00", ["2026-11-21", "2026-11-22"]),
        ("2026-11-21T16:30:00", "2026-11-21T16:54:59", ["2026-11-21"]),
        ("2026-11-21T16:30:00", "2026-11-21T16:55:00", ["2026-11-21", "2026-11-22"]),
        ("2026-11-21T17:04:59", "2026-11-21T17:30:00", ["2026-11-21", "2026-11-22"]),
        ("2026-11-21T17:05:00", "2026-11-21T17:30:00", ["2026-11-22"]),
        ("2026-12-31T16:58:00", "2026-12-31T17:01:00", ["2026-12-31", "2027-01-01"]),
        ("2026-11-21T05:00:00", "2026-11-23T05:00:00", ["2026-11-21", "2026-11-22", "2026-11-23"]),
    ],
)
def test_the_days_of_bangkok_are_asked_and_no_more(
    bank: ScbStandIn, since: str, until: str, days: list[str]
) -> None:
    for day in days:
        bank.knows(day, success([transaction(transactionId=day)]))
    assert [each.bank_transaction_id for each in ask(bank, question(since, until)).notices] == days
    assert bank.days == days


@pytest.mark.parametrize(
    ("since", "until"),
    [("2026-11-22T05:00:00", "2026-11-21T05:00:00"), ("2026-01-01T05:00:00", "2026-11-21T05:00:00")],
)
def test_a_time_that_makes_no_sense_is_not_asked_about(bank: ScbStandIn, since: str, until: str) -> None:
    with pytest.raises(NotAnswered):
        ask(bank, question(since, until))
    assert bank.receiver.requests == []


def test_a_payment_that_two_days_tell_is_one(bank: ScbStandIn) -> None:
    for day in ("2026-11-21", "2026-11-22"):
        bank.knows(day, success([transaction()]))
    found = ask(bank, question("2026-11-21T16:50:00", "2026-11-21T17:05:00"))
    assert len(found.notices) == 1
    assert [len(json.loads(line)["data"]) for line in found.body.splitlines()] == [1, 1]


def test_the_bank_is_asked_with_the_headers_of_its_document(bank: ScbStandIn) -> None:
    bank.knows("2026-11-21", success([]))
    ask(bank)
    fetched, asked = bank.receiver.requests
    assert fetched.json == {"applicationKey": "l7f329b707a0714f", "applicationSecret": bank.secret}
    for request in (fetched, asked):
        assert request.headers["resourceownerid"] == "l7f329b707a0714f"
        assert request.headers["accept-language"] == "EN"
        assert len(request.headers["requestuid"]) == 36
    assert asked.headers["authorization"] == "Bearer token-1"
    assert fetched.headers["requestuid"] != asked.headers["requestuid"]


def test_a_token_serves_until_shortly_before_it_ends(bank: ScbStandIn) -> None:
    bank.grants(granted("short", seconds=60), granted("long", seconds=1800))
    bank.knows("2026-11-21", success([]))
    for _ in range(4):
        ask(bank)
    assert [each.headers["authorization"] for each in bank.inquiries] == [
        "Bearer short", "Bearer long", "Bearer long", "Bearer long",
    ]  # fmt: skip


def test_a_token_that_is_refused_is_renewed_once(bank: ScbStandIn) -> None:
    bank.grants(granted("token-1"), granted("token-2"))
    bank.knows("2026-11-21", refused(), success([transaction()]))
    assert len(ask(bank).notices) == 1
    assert [each.headers["authorization"] for each in bank.inquiries] == ["Bearer token-1", "Bearer token-2"]


def test_a_bank_that_refuses_every_token_is_asked_twice_and_no_more(bank: ScbStandIn) -> None:
    bank.knows("2026-11-21", refused())
    with pytest.raises(NotAnswered):
        ask(bank)
    assert (len(bank.inquiries), bank.tokens_given) == (2, 2)


def test_a_token_that_a_page_for_people_refused_is_not_used_again(bank: ScbStandIn) -> None:
    bank.knows("2026-11-21", Reply(401, body=b"<h1>Unauthorized</h1>"), success([]))
    with pytest.raises(NotAnswered):
        ask(bank)
    assert ask(bank).notices == ()
    assert bank.tokens_given == 2


@pytest.mark.parametrize(
    "reply",
    [
        refused(403, 9503),
        Reply(200, body=b"<html>"),
        Reply(200, body=b'{"data": {}}'),
        success({"accessToken": ""}),
        success({"accessToken": "to ken\r\n", "expiresIn": "soon"}),
        Reply(closes=True),
    ],
)
def test_without_a_token_nothing_is_asked(bank: ScbStandIn, reply: Reply) -> None:
    bank.grants(reply)
    with pytest.raises(NotAnswered):
        ask(bank)
    assert bank.inquiries == []


@pytest.mark.parametrize(
    "reply",
    [
        refused(500, 9700),
        refused(429, 9800),
        refused(404, 9900),
        refused(400, 1104),
        Reply(404, body=b"{}"),
        Reply(200, body=b"{}"),
        Reply(200, body=b'{"status": {"code": 4101}, "data": []}'),
        Reply(200, body=b"[]"),
        Reply(200, body=b'{"status": {"code": 1000}, "data": ['),
        Reply(200, body=b'{"status": {"code": 1000}, "data": "' + b"x" * 1_100_000 + b'"}'),
        Reply(302, headers={"Location": "https://elsewhere.example/"}),
        Reply(closes=True),
    ],
)
def test_no_answer_is_not_taken_for_no_money(bank: ScbStandIn, reply: Reply) -> None:
    bank.knows("2026-11-21", reply)
    with pytest.raises(NotAnswered):
        ask(bank)


def test_a_silent_bank_is_left_in_time(bank: ScbStandIn, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oauth, "READ_SECONDS", 0.2)
    bank.knows("2026-11-21", Reply(hangs=True))
    with pytest.raises(NotAnswered):
        ask(bank)


def test_several_days_share_the_time_of_one_question(
    bank: ScbStandIn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(oauth, "ALL_SECONDS", 0.3)
    days = ["2026-11-21", "2026-11-22", "2026-11-23"]
    for day in days:
        bank.knows(day, replace(success([]), delay=0.2))
    with pytest.raises(NotAnswered):
        ask(bank, question("2026-11-21T05:00:00", "2026-11-23T05:00:00"))
    assert bank.days != days


@pytest.mark.parametrize(
    "data",
    [
        "money",
        {"transactionId": "x"},
        [None],
        ["x"],
        [transaction(billPaymentRef1="ANOTHER")],
        [transaction(payeeProxyId="010555000000001")],
        [transaction(amount="?")],
        [transaction(reverseFlag="X")],
        [transaction(reverseFlag=[])],
        [transaction(), transaction(transactionDateandTime="today")],
    ],
)
def test_an_answer_about_money_that_cannot_be_read_is_unreadable(bank: ScbStandIn, data: Any) -> None:
    bank.knows("2026-11-21", success(data))
    with pytest.raises(Unreadable) as parked:
        ask(bank)
    assert parked.value.body == success(data).body


def test_a_bank_that_is_not_there_has_not_answered(bank: ScbStandIn) -> None:
    credentials = {**bank.link.credentials, "api_url": "http://127.0.0.1:1"}
    gone = replace(bank.link, credentials=credentials)
    with pytest.raises(NotAnswered):
        banks.get("scb", gone).inquire(question())


def test_secrets_of_a_link_are_not_shown(bank: ScbStandIn) -> None:
    bank.knows("2026-11-21", refused(500))
    with pytest.raises(NotAnswered) as silent:
        ask(bank)
    adapter = banks.get("scb", bank.link)
    shown = f"{bank.link!r} {adapter!r} {vars(adapter)['_api']!r} {silent.value!r} {silent.value}"
    assert bank.secret not in shown
