"""Transfer orders at the sandbox bank: each answer of the bank, and a missing answer."""

import hmac
from collections.abc import Iterator
from typing import Any

import orjson
import pytest

from banks import http_client, sandbox
from banks.base import TransferOrder, TransferResult
from banks.sandbox import SandboxSender
from tests.webhook_receiver import Receiver, Reply

ORDER_ID = "wd_0Kq1vJZ3d8rT5wY7uI9oP2aS4dF"
ORDER = TransferOrder(ORDER_ID, "withdrawal", 150_000, "014", "4051234567", "สมชาย ใจดี", "")
PATH = "/sandbox/bank/v1/orders"
ANSWER = {
    "reference": ORDER_ID,
    "bank_reference": "sbo_1",
    "amount": "1500.00",
    "currency": "THB",
    "status": "processing",
    "reason": "",
}


@pytest.fixture
def bank() -> Iterator[Receiver]:
    with Receiver.running() as bank:
        yield bank


@pytest.fixture
def adapter(bank: Receiver) -> SandboxSender:
    return SandboxSender("the-secret", bank.base_url)


def reply(code: int = 200, **changes: Any) -> Reply:
    return Reply(code, body=orjson.dumps(ANSWER | changes))


def both(adapter: SandboxSender, bank: Receiver, response: Reply) -> tuple[TransferResult, TransferResult]:
    """The results of `send` and `inquire` with the same response."""
    bank.on(PATH, response)
    bank.on(f"{PATH}/{ORDER_ID}", response)
    return adapter.send(ORDER), adapter.inquire(ORDER)


def test_order_request_is_in_baht_and_signed(adapter: SandboxSender, bank: Receiver) -> None:
    bank.on(PATH, reply())
    assert adapter.send(ORDER) == TransferResult("processing", "sbo_1")
    (request,) = bank.requests
    assert request.json == {
        "reference": ORDER_ID,
        "type": "payout",
        "amount": "1500.00",
        "currency": "THB",
        "bank_code": "014",
        "account": "4051234567",
        "account_name": "สมชาย ใจดี",
    }
    assert_signed(request.headers["sandbox-bank-signature"], f"POST {PATH}.".encode() + request.body)


def test_inquiry_is_signed_and_has_no_body(adapter: SandboxSender, bank: Receiver) -> None:
    adapter.inquire(ORDER)
    (request,) = bank.requests
    assert (request.method, request.path, request.body) == ("GET", f"{PATH}/{ORDER_ID}", b"")
    assert_signed(request.headers["sandbox-bank-signature"], f"GET {PATH}/{ORDER_ID}.".encode())


def assert_signed(signature: str, signed: bytes) -> None:
    at, _, given = signature.removeprefix("t=").partition(",v1=")
    assert given == hmac.digest(b"the-secret", at.encode() + b"." + signed, "sha256").hex()


@pytest.mark.parametrize(
    ("status", "reason", "result"),
    [
        ("processing", "", TransferResult("processing", "sbo_1")),
        ("succeeded", "", TransferResult("succeeded", "sbo_1")),
        ("failed", "account_not_found", TransferResult("failed", "sbo_1", "invalid_account")),
        ("failed", "account_closed", TransferResult("failed", "sbo_1", "rejected_by_bank")),
        ("returned", "account_closed", TransferResult("returned", "sbo_1", "returned_by_bank")),
    ],
)
def test_order_status_is_parsed(
    adapter: SandboxSender, bank: Receiver, status: str, reason: str, result: TransferResult
) -> None:
    assert both(adapter, bank, reply(status=status, reason=reason)) == (result, result)


@pytest.mark.parametrize(
    "response",
    [
        reply(500),
        reply(503),
        reply(302),
        reply(408),
        reply(409),
        Reply(200, body=b""),
        Reply(200, body=b"<html>"),
        Reply(200, body=b"[]"),
        Reply(200, body=orjson.dumps(ANSWER)[:-9]),
        Reply(200, body=b" " * http_client.MAX_RESPONSE_BYTES + orjson.dumps(ANSWER)),
        Reply(200, headers={"Content-Length": "1000"}, body=orjson.dumps(ANSWER), closes=True),
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
def test_unexpected_order_response_is_unknown(
    adapter: SandboxSender, bank: Receiver, response: Reply
) -> None:
    assert both(adapter, bank, response) == (TransferResult("unknown"), TransferResult("unknown"))


@pytest.mark.parametrize("code", [400, 422])
def test_rejected_order_is_failed(adapter: SandboxSender, bank: Receiver, code: int) -> None:
    responses = both(adapter, bank, reply(code))
    assert responses == (TransferResult("failed", failure_code="rejected_by_bank"), TransferResult("unknown"))


@pytest.mark.parametrize("code", [401, 403, 404, 429])
def test_unaccepted_order_is_not_sent(adapter: SandboxSender, bank: Receiver, code: int) -> None:
    assert both(adapter, bank, reply(code)) == (TransferResult("not_sent"), TransferResult("unknown"))


def test_refused_connection_is_not_sent_order() -> None:
    adapter = SandboxSender("the-secret", "http://127.0.0.1:1")
    assert adapter.send(ORDER) == TransferResult("not_sent")
    assert adapter.inquire(ORDER) == TransferResult("unknown")


@pytest.mark.slow
def test_timeout_of_order_is_unknown(
    adapter: SandboxSender, bank: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sandbox, "READ_SECONDS", 0.05)
    assert both(adapter, bank, Reply(hangs=True)) == (TransferResult("unknown"), TransferResult("unknown"))


def test_order_response_in_several_packets_is_read_completely(adapter: SandboxSender, bank: Receiver) -> None:
    body = orjson.dumps(ANSWER)
    pieces = b"".join(b"1\r\n" + body[at : at + 1] + b"\r\n" for at in range(len(body))) + b"0\r\n\r\n"
    bank.on(PATH, Reply(200, headers={"Transfer-Encoding": "chunked"}, body=pieces))
    assert adapter.send(ORDER) == TransferResult("processing", "sbo_1")


def test_environment_proxy_is_not_used_for_internal_calls(
    adapter: SandboxSender, bank: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    bank.on(PATH, reply())
    assert adapter.send(ORDER).status == "processing"
