"""What the adapter makes of each answer of the bank to an inquiry, and of none."""

import hmac
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import orjson
import pytest

from banks import sandbox_inquiries
from banks.base import (
    Bank,
    Found,
    KnowsSlips,
    NotAnswered,
    Notice,
    Question,
    Transferred,
    Unreadable,
)
from banks.sandbox import SandboxBank
from core.slips import Slip
from tests import receiver
from tests.banks.test_sandbox import TOLD
from tests.receiver import Receiver, Reply

DOOR = "/sandbox/bank/v1/transactions"
UNTIL = datetime(2026, 11, 21, 3, 19, 5, 123_000, UTC)
QUESTION = Question(
    "010555000000001", "ABCDEFGHJ01234567890", 150_000, UNTIL - timedelta(minutes=15, seconds=60), UNTIL
)
QUERY = (
    "biller_id=010555000000001&reference1=ABCDEFGHJ01234567890"
    "&since=2026-11-21T03%3A03%3A05.123Z&until=2026-11-21T03%3A19%3A05.123Z"
)
PAID = orjson.dumps({"transactions": [TOLD]})


@pytest.fixture
def bank() -> Iterator[Receiver]:
    with receiver.listening() as door:
        yield door


@pytest.fixture
def adapter(bank: Receiver) -> Bank:
    return SandboxBank("the-secret", bank.base_url)


def found(adapter: Bank, bank: Receiver, body: bytes, status: int = 200) -> Found:
    bank.on(f"{DOOR}?{QUERY}", Reply(status, body=body))
    return adapter.inquire(QUESTION)


def test_a_question_is_signed_with_all_that_it_asks(adapter: Bank, bank: Receiver) -> None:
    found(adapter, bank, PAID)
    (asked,) = bank.requests
    assert (asked.method, asked.path, asked.body) == ("GET", f"{DOOR}?{QUERY}", b"")
    at, _, given = asked.headers["sandbox-bank-signature"].removeprefix("t=").partition(",v1=")
    assert given == hmac.digest(b"the-secret", f"{at}.GET {DOOR}?{QUERY}.".encode(), "sha256").hex()


def test_nothing_paid_is_an_answer(adapter: Bank, bank: Receiver) -> None:
    assert found(adapter, bank, b'{"transactions":[]}') == Found(b'{"transactions":[]}', ())


def test_what_was_paid_is_read_as_a_callback_is(adapter: Bank, bank: Receiver) -> None:
    both = orjson.dumps({"transactions": [TOLD, TOLD | {"type": "reversal"}]})
    answer = found(adapter, bank, both)
    assert answer.body == both
    assert [notice.kind for notice in answer.notices] == ["credit", "reversal"]
    assert answer.notices[0] == adapter.parse_notice(orjson.dumps(TOLD))


def one(**changes: Any) -> bytes:
    return orjson.dumps({"transactions": [TOLD | changes]})


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", PAID[:-9]])
def test_what_is_cut_or_from_somebody_else_is_no_answer(adapter: Bank, bank: Receiver, body: bytes) -> None:
    with pytest.raises(NotAnswered):
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
def test_what_is_not_understood_is_kept_whole(adapter: Bank, bank: Receiver, body: bytes) -> None:
    with pytest.raises(Unreadable) as refused:
        found(adapter, bank, body)
    assert refused.value.body == body


@pytest.mark.parametrize("status", [302, 400, 401, 404, 429, 500, 503])
def test_a_refusal_is_no_answer(adapter: Bank, bank: Receiver, status: int) -> None:
    with pytest.raises(NotAnswered, match=str(status)):
        found(adapter, bank, PAID, status)


SLIP = Slip(TOLD["payer_bank_code"], "202611210000000000000000A")
SLIP_DOOR = f"/sandbox/bank/v1/slips?sending_bank={SLIP.sending_bank}&reference={SLIP.transaction_id}"
SHOWN = TOLD | {"slip_reference": SLIP.transaction_id}


def of_slip(adapter: Bank, bank: Receiver, *told: Any) -> Transferred | None:
    bank.on(SLIP_DOOR, Reply(body=orjson.dumps({"transactions": told})))
    assert isinstance(adapter, KnowsSlips)
    return adapter.transfer(SLIP)


def test_a_slip_names_a_transfer_and_who_got_it(adapter: Bank, bank: Receiver) -> None:
    told = of_slip(adapter, bank, SHOWN, SHOWN | {"type": "reversal"})
    credit = adapter.parse_notice(orjson.dumps(SHOWN))
    assert told is not None
    assert isinstance(credit, Notice)
    assert (told.amount, told.at, told.reference1) == (credit.amount, credit.paid_at, credit.reference1)
    assert (told.biller_id, told.payee) == (credit.biller_id, f"biller {credit.biller_id}")


def test_a_slip_of_a_transfer_that_the_bank_does_not_know_is_none(adapter: Bank, bank: Receiver) -> None:
    assert of_slip(adapter, bank) is None


@pytest.mark.parametrize(
    "changes", [{"slip_reference": "A1"}, {"payer_bank_code": "999"}, {"amount": "0.00"}]
)
def test_an_answer_about_another_slip_is_not_believed(
    adapter: Bank, bank: Receiver, changes: dict[str, str]
) -> None:
    with pytest.raises(Unreadable):
        of_slip(adapter, bank, SHOWN | changes)


def test_without_a_connection_there_is_no_answer() -> None:
    with pytest.raises(NotAnswered):
        SandboxBank("the-secret", "http://127.0.0.1:1").inquire(QUESTION)


def test_an_answer_that_does_not_come_is_none(
    adapter: Bank, bank: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox_inquiries, "READ_SECONDS", 0.05)
    bank.on(f"{DOOR}?{QUERY}", Reply(hangs=True))
    with pytest.raises(NotAnswered):
        adapter.inquire(QUESTION)
