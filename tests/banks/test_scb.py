"""Siam Commercial Bank: confirmations and inquiries."""

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest

import banks
from banks import InquiryFailed, InquiryRequest, ReportedTransaction, UnreadableMessage, oauth, scb
from banks.scb import Scb
from tests.banks.fake_scb import (
    BILLER,
    CONFIG,
    REFERENCE,
    TOKENS,
    FakeScb,
    confirmation,
    error_response,
    success,
    token_response,
    transaction,
)
from tests.webhook_receiver import Reply

NOON = datetime(2026, 11, 21, 5, 0, tzinfo=UTC)
SCB = Scb(CONFIG)
PAID = ReportedTransaction(
    bank_reference="201907169lbqgPbt1Bl3oiA",
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
def bank() -> Iterator[FakeScb]:
    with FakeScb.running() as bank:
        yield bank


def question(since: str = "2026-11-21T05:00:00", until: str = "2026-11-21T05:15:00") -> InquiryRequest:
    """UTC."""
    ends = [datetime.fromisoformat(end).replace(tzinfo=UTC) for end in (since, until)]
    return InquiryRequest(BILLER, REFERENCE, 150_000, *ends)


def ask(bank: FakeScb, inquiry: InquiryRequest | None = None) -> banks.InquiryResult:
    return banks.get("scb", bank.config).inquire(inquiry or question())


def test_confirmation_is_parsed_into_satang_and_utc() -> None:
    assert SCB.parse_notification(confirmation()) == PAID


@pytest.mark.parametrize(
    ("shown", "instant"),
    [
        ("2026-11-21T11:30:58.664+07:00", datetime(2026, 11, 21, 4, 30, 58, 664_000, UTC)),
        ("2026-11-21T00:00:01+07:00", datetime(2026, 11, 20, 17, 0, 1, tzinfo=UTC)),
        ("2026-11-21T04:30:58+00:00", datetime(2026, 11, 21, 4, 30, 58, tzinfo=UTC)),
    ],
)
def test_times_with_offset_are_parsed(shown: str, instant: datetime) -> None:
    assert SCB.parse_notification(confirmation(transactionDateandTime=shown)).paid_at == instant


MALFORMED_FIELDS: dict[str, list[Any]] = {
    "transactionId": [None, "", "x" * 65, 17],
    "payeeProxyId": [None, "010555000000001"],
    "billPaymentRef1": ["", "A" * 21],
    "billPaymentRef2": ["A" * 21],
    "billPaymentRef3": [["PTF"]],
    "currencyCode": ["840"],
    "transactionDateandTime": [
        "2026-11-21T11:30:58",
        "2026-13-21T11:30:58+07:00",
        "0001-01-01T00:00:00+07:00",
        "20261121 11:30:58",
    ],
}


def test_malformed_required_field_makes_message_unreadable() -> None:
    for name, value in [(name, value) for name, values in MALFORMED_FIELDS.items() for value in values]:
        with pytest.raises(UnreadableMessage):
            SCB.parse_notification(confirmation(**{name: value}))


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
def test_malformed_optional_notification_field_becomes_empty(
    name: str, field: str, values: list[Any]
) -> None:
    empty: dict[str, Any] = {field: ""}
    for value in values:
        assert SCB.parse_notification(confirmation(**{name: value})) == replace(PAID, **empty)


def test_scb_acknowledgement_matches_the_documentation() -> None:
    expected = {"resCode": "00", "resDesc": "success", "transactionId": PAID.bank_reference}
    assert SCB.acknowledge(PAID) == expected


@pytest.mark.parametrize(
    ("body", "transaction_id"),
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
def test_acknowledgement_of_unreadable_message_contains_the_message_id(
    body: bytes, transaction_id: str
) -> None:
    with pytest.raises(UnreadableMessage) as unreadable:
        SCB.parse_notification(body)
    assert unreadable.value.acknowledgement == {
        "resCode": "00",
        "resDesc": "success",
        "transactionId": transaction_id,
    }


def test_inquiry_of_unpaid_code_finds_no_transactions(bank: FakeScb) -> None:
    bank.on_inquiry("2026-11-21", success([]))
    found = ask(bank)
    assert found.transactions == ()
    assert json.loads(found.body)["data"] == []


@pytest.mark.parametrize("reply", [success(None), error_response(404, 1104)])
def test_inquiry_response_not_found_means_no_transactions(bank: FakeScb, reply: Reply) -> None:
    bank.on_inquiry("2026-11-21", reply)
    assert ask(bank).transactions == ()


def test_inquiry_finds_same_transaction_as_confirmation(bank: FakeScb) -> None:
    bank.on_inquiry("2026-11-21", success([transaction()]))
    assert ask(bank).transactions == (replace(PAID, slip_reference="232815519467"),)


def test_inquiry_works_for_former_biller_id(bank: FakeScb) -> None:
    bank.on_inquiry("2026-11-21", success([transaction()]))
    moved = replace(bank.config, biller_id="010555000000001")
    (notification,) = banks.get("scb", moved).inquire(question()).transactions
    assert notification.biller_id == BILLER


def test_several_payments_of_one_code_are_all_found(bank: FakeScb) -> None:
    second = transaction(transactionId="second", amount=2.5)
    bank.on_inquiry("2026-11-21", success([transaction(), second]))
    assert [(each.bank_reference, each.amount) for each in ask(bank).transactions] == [
        (PAID.bank_reference, 150_000),
        ("second", 250),
    ]


def test_inquiry_of_reversed_payment_finds_credit_and_reversal(bank: FakeScb) -> None:
    bank.on_inquiry("2026-11-21", success([transaction(reverseFlag="R")]))
    credit, reversal = ask(bank).transactions
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
def test_inquiry_asks_only_days_of_bangkok(bank: FakeScb, since: str, until: str, days: list[str]) -> None:
    for day in days:
        bank.on_inquiry(day, success([transaction(transactionId=day)]))
    assert [each.bank_reference for each in ask(bank, question(since, until)).transactions] == days
    assert bank.inquired_days == days


@pytest.mark.parametrize(
    ("since", "until"),
    [("2026-11-22T05:00:00", "2026-11-21T05:00:00"), ("2026-01-01T05:00:00", "2026-11-21T05:00:00")],
)
def test_inquiry_with_invalid_period_fails(bank: FakeScb, since: str, until: str) -> None:
    with pytest.raises(InquiryFailed):
        ask(bank, question(since, until))
    assert bank.requests == []


def test_inquiry_counts_a_transaction_reported_on_two_days_once(bank: FakeScb) -> None:
    for day in ("2026-11-21", "2026-11-22"):
        bank.on_inquiry(day, success([transaction()]))
    found = ask(bank, question("2026-11-21T16:50:00", "2026-11-21T17:05:00"))
    assert len(found.transactions) == 1
    assert [len(json.loads(line)["data"]) for line in found.body.splitlines()] == [1, 1]


def test_api_request_has_documented_headers(bank: FakeScb) -> None:
    bank.on_inquiry("2026-11-21", success([]))
    ask(bank)
    fetched, inquired = bank.requests
    assert fetched.json == {"applicationKey": "l7f329b707a0714f", "applicationSecret": bank.secret}
    for request in (fetched, inquired):
        assert request.headers["resourceownerid"] == "l7f329b707a0714f"
        assert request.headers["accept-language"] == "EN"
        assert len(request.headers["requestuid"]) == 36
    assert inquired.headers["authorization"] == "Bearer token-1"
    assert fetched.headers["requestuid"] != inquired.headers["requestuid"]


def test_access_token_is_reused_until_shortly_before_expiry(bank: FakeScb) -> None:
    bank.on(TOKENS, token_response("short", seconds=60), token_response("long", seconds=1800))
    bank.on_inquiry("2026-11-21", success([]))
    for _ in range(4):
        ask(bank)
    assert [each.headers["authorization"] for each in bank.inquiries] == [
        "Bearer short", "Bearer long", "Bearer long", "Bearer long",
    ]  # fmt: skip


def test_refused_access_token_is_renewed_once(bank: FakeScb) -> None:
    bank.on(TOKENS, token_response("token-1"), token_response("token-2"))
    bank.on_inquiry("2026-11-21", error_response(), success([transaction()]))
    assert len(ask(bank).transactions) == 1
    assert [each.headers["authorization"] for each in bank.inquiries] == ["Bearer token-1", "Bearer token-2"]


def test_inquiry_with_refused_tokens_is_tried_twice(bank: FakeScb) -> None:
    bank.on_inquiry("2026-11-21", error_response())
    with pytest.raises(InquiryFailed):
        ask(bank)
    assert (len(bank.inquiries), len(bank.to(TOKENS))) == (2, 2)


def test_token_refused_by_html_page_is_dropped(bank: FakeScb) -> None:
    bank.on_inquiry("2026-11-21", Reply(401, body=b"<h1>Unauthorized</h1>"), success([]))
    with pytest.raises(InquiryFailed):
        ask(bank)
    assert ask(bank).transactions == ()
    assert len(bank.to(TOKENS)) == 2


@pytest.mark.parametrize(
    "reply",
    [
        error_response(403, 9503),
        Reply(200, body=b"<html>"),
        Reply(200, body=b'{"data": {}}'),
        success({"accessToken": ""}),
        success({"accessToken": "to ken\r\n", "expiresIn": "soon"}),
        Reply(closes=True),
    ],
)
def test_inquiry_without_token_makes_no_request(bank: FakeScb, reply: Reply) -> None:
    bank.on(TOKENS, reply)
    with pytest.raises(InquiryFailed):
        ask(bank)
    assert bank.inquiries == []


@pytest.mark.parametrize(
    "reply",
    [
        error_response(500, 9700),
        error_response(429, 9800),
        error_response(404, 9900),
        error_response(400, 1104),
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
def test_failed_inquiry_is_not_taken_as_unpaid(bank: FakeScb, reply: Reply) -> None:
    bank.on_inquiry("2026-11-21", reply)
    with pytest.raises(InquiryFailed):
        ask(bank)


@pytest.mark.slow
def test_inquiry_of_silent_bank_times_out(bank: FakeScb, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oauth, "READ_SECONDS", 0.2)
    bank.on_inquiry("2026-11-21", Reply(hangs=True))
    with pytest.raises(InquiryFailed):
        ask(bank)


@pytest.mark.slow
def test_requests_of_one_inquiry_share_one_deadline(bank: FakeScb, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(oauth, "TOTAL_SECONDS", 0.3)
    days = ["2026-11-21", "2026-11-22", "2026-11-23"]
    for day in days:
        bank.on_inquiry(day, replace(success([]), delay=0.2))
    with pytest.raises(InquiryFailed):
        ask(bank, question("2026-11-21T05:00:00", "2026-11-23T05:00:00"))
    assert bank.inquired_days != days


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
def test_unparsable_inquiry_response_is_unreadable_message(bank: FakeScb, data: Any) -> None:
    bank.on_inquiry("2026-11-21", success(data))
    with pytest.raises(UnreadableMessage) as unreadable:
        ask(bank)
    assert unreadable.value.body == success(data).body


def test_unreachable_bank_is_failed_inquiry(bank: FakeScb) -> None:
    credentials = {**bank.config.credentials, "api_url": "http://127.0.0.1:1"}
    gone = replace(bank.config, credentials=credentials)
    with pytest.raises(InquiryFailed):
        banks.get("scb", gone).inquire(question())


def test_repr_of_config_hides_credentials(bank: FakeScb) -> None:
    bank.on_inquiry("2026-11-21", error_response(500))
    with pytest.raises(InquiryFailed) as silent:
        ask(bank)
    adapter, session = banks.get("scb", bank.config), scb._Session(bank.config.credentials)
    shown = f"{bank.config!r} {adapter!r} {session!r} {silent.value!r} {silent.value}"
    assert bank.secret not in shown
