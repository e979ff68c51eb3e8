"""Slip lookups at Siam Commercial Bank."""

from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given, strategies as st

from banks import InquiryFailed, SlipTransfer, UnreadableMessage, scb
from banks.scb import Scb
from core.thai.slips import Slip
from tests.banks.fake_scb import BILLER, REFERENCE, SLIP, FakeScb, error_response, success
from tests.webhook_receiver import Reply

REQUESTED = Slip("014", SLIP["transRef"])
TRANSFER = SlipTransfer(
    amount=150_000,
    transferred_at=datetime(2026, 11, 21, 4, 30, 58, tzinfo=UTC),
    payee=f"ร้านส้มตำ {BILLER} xxx-x-x4321-x",
    biller_id=BILLER,
    reference1=REFERENCE,
    reference2="SHOP7",
    reference3="PTF",
)


@pytest.fixture
def bank() -> Iterator[FakeScb]:
    with FakeScb.running() as bank:
        yield bank


def ask(bank: FakeScb) -> SlipTransfer | None:
    return Scb(bank.config).look_up_slip(REQUESTED)


def test_slip_transfer_has_payee_and_references(bank: FakeScb) -> None:
    bank.on_slip(success(SLIP))
    assert ask(bank) == TRANSFER
    fetched, lookup = bank.requests
    assert fetched.path == "/v1/oauth/token"
    assert lookup.headers["authorization"] == "Bearer token-1"


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"amount": 1500}, {}),
        ({"amount": 0.29}, {"amount": 29}),
        ({"ref1": None, "ref2": "", "ref3": None}, {"reference1": "", "reference2": "", "reference3": ""}),
        ({"receiver": None}, {"payee": "", "biller_id": ""}),
        (
            {
                "receiver": {
                    "displayName": None,
                    "name": "MR. KITKAT G",
                    "account": {"value": "xxx-x-x7404-x"},
                }
            },
            {"payee": "MR. KITKAT G xxx-x-x7404-x", "biller_id": ""},
        ),
        (
            {"receiver": {"displayName": "ก", "proxy": {"type": "MSISDN", "value": "xxx-xxx-1234"}}},
            {"payee": "ก xxx-xxx-1234", "biller_id": ""},
        ),
    ],
)
def test_missing_slip_fields_are_empty(
    bank: FakeScb, changes: dict[str, Any], expected: dict[str, Any]
) -> None:
    bank.on_slip(success(SLIP | changes))
    assert ask(bank) == replace(TRANSFER, **expected)


def test_slip_lookup_of_unknown_transfer_is_none(bank: FakeScb) -> None:
    bank.on_slip(error_response(404, 1104))
    assert ask(bank) is None


@pytest.mark.parametrize(
    "reply",
    [
        error_response(404, 9900),
        error_response(400, 1104),
        error_response(429, 9800),
        error_response(500, 9700),
        Reply(404, body=b"<html>"),
        Reply(200, body=b"{}"),
        Reply(closes=True),
    ],
)
def test_slip_lookup_with_another_error_is_a_failed_inquiry(bank: FakeScb, reply: Reply) -> None:
    bank.on_slip(reply)
    with pytest.raises(InquiryFailed):
        ask(bank)


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        [SLIP],
        SLIP | {"transRef": "202611219lbqgPbt1Bl3oiB"},
        SLIP | {"sendingBank": "004"},
        SLIP | {"amount": None},
        SLIP | {"amount": "0.00"},
        SLIP | {"transDate": "2026-11-21"},
        SLIP | {"transDate": "25691121"},
        SLIP | {"transTime": "25:00:00"},
        SLIP | {"ref1": "A" * 21},
        SLIP | {"ref1": ["A"]},
    ],
)
def test_response_about_other_slip_is_unreadable(bank: FakeScb, data: Any) -> None:
    bank.on_slip(success(data))
    with pytest.raises(UnreadableMessage):
        ask(bank)


VALUES = (
    st.none()
    | st.integers()
    | st.text()
    | st.lists(st.text(), max_size=2)
    | st.dictionaries(
        st.sampled_from(["value", "proxy", "account", "name"]), st.none() | st.text() | st.integers()
    )
)


@given(st.dictionaries(st.sampled_from(list(SLIP)), VALUES))
@pytest.mark.slow
def test_arbitrary_values_are_parsed_or_unreadable(changes: dict[str, Any]) -> None:
    body = success(SLIP | changes).body
    try:
        transfer = scb.parse_slip_transfer(body, REQUESTED)
    except UnreadableMessage:
        return
    assert transfer.amount > 0
