"""What the adapter makes of each answer of the bank, and of none."""

import hmac
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from banks import exchange, sandbox_orders, sender
from banks.base import Order, UnknownBank, Word
from banks.sandbox_orders import SandboxSender
from tests import receiver
from tests.receiver import Receiver, Reply

ORDER_ID = "wd_0Kq1vJZ3d8rT5wY7uI9oP2aS4dF"
ORDER = Order(ORDER_ID, "withdrawal", 150_000, "014", "4051234567", "สมชาย ใจดี", "")
DOOR = "/sandbox/bank/v1/orders"
TOLD = {
    "reference": ORDER_ID,
    "bank_reference": "sbo_1",
    "amount": "1500.00",
    "currency": "THB",
    "status": "processing",
    "reason": "",
}


@pytest.fixture
def bank() -> Iterator[Receiver]:
    with receiver.listening() as door:
        yield door


@pytest.fixture
def adapter(bank: Receiver) -> SandboxSender:
    return SandboxSender("the-secret", bank.base_url)


def reply(code: int = 200, **changes: Any) -> Reply:
    return Reply(code, body=orjson.dumps(TOLD | changes))


def both(adapter: SandboxSender, bank: Receiver, answer: Reply) -> tuple[Word, Word]:
    """What is made of an answer to the order, and to an inquiry."""
    bank.on(DOOR, answer)
    bank.on(f"{DOOR}/{ORDER_ID}", answer)
    return adapter.send(ORDER), adapter.inquire(ORDER)


def test_an_order_is_told_in_baht_and_signed(adapter: SandboxSender, bank: Receiver) -> None:
    bank.on(DOOR, reply())
    assert adapter.send(ORDER) == Word("processing", "sbo_1")
    (asked,) = bank.requests
    assert asked.json == {
        "reference": ORDER_ID,
        "type": "payout",
        "amount": "1500.00",
        "currency": "THB",
        "bank_code": "014",
        "account": "4051234567",
        "account_name": "สมชาย ใจดี",
    }
    assert_signed(asked.headers["sandbox-bank-signature"], f"POST {DOOR}.".encode() + asked.body)


def test_an_inquiry_is_signed_and_has_no_body(adapter: SandboxSender, bank: Receiver) -> None:
    adapter.inquire(ORDER)
    (asked,) = bank.requests
    assert (asked.method, asked.path, asked.body) == ("GET", f"{DOOR}/{ORDER_ID}", b"")
    assert_signed(asked.headers["sandbox-bank-signature"], f"GET {DOOR}/{ORDER_ID}.".encode())


def assert_signed(signature: str, signed: bytes) -> None:
    at, _, given = signature.removeprefix("t=").partition(",v1=")
    assert given == hmac.digest(b"the-secret", at.encode() + b"." + signed, "sha256").hex()


@pytest.mark.parametrize(
    ("status", "reason", "word"),
    [
        ("processing", "", Word("processing", "sbo_1")),
        ("succeeded", "", Word("succeeded", "sbo_1")),
        ("failed", "account_not_found", Word("failed", "sbo_1", "invalid_account")),
        ("failed", "account_closed", Word("failed", "sbo_1", "rejected_by_bank")),
        ("returned", "account_closed", Word("returned", "sbo_1", "returned_by_bank")),
    ],
)
def test_what_the_bank_says_is_understood(
    adapter: SandboxSender, bank: Receiver, status: str, reason: str, word: Word
) -> None:
    assert both(adapter, bank, reply(status=status, reason=reason)) == (word, word)


@pytest.mark.parametrize(
    "answer",
    [
        reply(500),
        reply(503),
        reply(302),
        reply(408),
        reply(409),
        Reply(200, body=b""),
        Reply(200, body=b"<html>"),
        Reply(200, body=b"[]"),
        Reply(200, body=orjson.dumps(TOLD)[:-9]),
        Reply(200, body=b" " * exchange.LONGEST_ANSWER + orjson.dumps(TOLD)),
        Reply(200, headers={"Content-Length": "1000"}, body=orjson.dumps(TOLD), closes=True),
        Reply(closes=True),
        reply(status="lost"),
        reply(status=None),
        reply(reference="wd_another"),
        reply(amount="1500.01"),
        reply(currency="USD"),
        reply(bank_reference="two\nlines"),
        reply(reason=7),
    ],
)
def test_anything_else_is_unknown(adapter: SandboxSender, bank: Receiver, answer: Reply) -> None:
    assert both(adapter, bank, answer) == (Word("unknown"), Word("unknown"))


@pytest.mark.parametrize("code", [400, 422])
def test_a_refusal_of_the_order_ends_it(adapter: SandboxSender, bank: Receiver, code: int) -> None:
    answers = both(adapter, bank, reply(code))
    assert answers == (Word("failed", failure_code="rejected_by_bank"), Word("unknown"))


@pytest.mark.parametrize("code", [401, 403, 404, 429])
def test_a_door_that_is_not_opened_took_no_order(adapter: SandboxSender, bank: Receiver, code: int) -> None:
    assert both(adapter, bank, reply(code)) == (Word("not_sent"), Word("unknown"))


def test_without_a_connection_nothing_was_sent() -> None:
    adapter = SandboxSender("the-secret", "http://127.0.0.1:1")
    assert (adapter.send(ORDER), adapter.inquire(ORDER)) == (Word("not_sent"), Word("unknown"))


def test_an_answer_that_does_not_come_is_unknown(
    adapter: SandboxSender, bank: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox_orders, "READ_SECONDS", 0.05)
    assert both(adapter, bank, Reply(hangs=True)) == (Word("unknown"), Word("unknown"))


def test_an_answer_in_pieces_is_read_whole(adapter: SandboxSender, bank: Receiver) -> None:
    body = orjson.dumps(TOLD)
    pieces = b"".join(b"1\r\n" + body[at : at + 1] + b"\r\n" for at in range(len(body))) + b"0\r\n\r\n"
    # The receiver counts the bytes it sends; here their pieces do.
    bank.on(DOOR, Reply(200, headers={"Transfer-Encoding": "chunked"}, body=pieces))
    assert adapter.send(ORDER) == Word("processing", "sbo_1")


def test_a_proxy_of_the_environment_is_not_asked(
    adapter: SandboxSender, bank: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    bank.on(DOOR, reply())
    assert adapter.send(ORDER).fate == "processing"


@pytest.mark.parametrize("route", ["", "sandbox", "bank:nobody", "bank:"])
def test_a_route_that_leads_nowhere_is_unknown(route: str) -> None:
    with pytest.raises(UnknownBank):
        sender(route)


def test_a_deployment_without_the_secret_has_no_way_to_the_sandbox_bank(settings: Any) -> None:
    settings.SANDBOX_BANK_SECRET = ""
    with pytest.raises(UnknownBank):
        sender("bank:sandbox")
