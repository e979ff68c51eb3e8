"""What the Python client does when the service is slow, busy, broken or gone: over real sockets."""

import asyncio
import base64
import json
import logging
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
import thaiqr
from thaiqr import AsyncThaiQR, ThaiQR, attempts, errors

from tests import webhook_receiver
from tests.clients.running import KEY, async_client, blocking_client
from tests.webhook_receiver import ReceivedRequest, Receiver, Reply, Script

BANKS = Reply(body=b'{"banks": []}')
CUT = Reply(closes=True)
Send = Callable[[Receiver, str], Any]


def refusal(status: int, code: str, kind: str, **headers: str) -> Reply:
    error = {"code": code, "message": "No.", "type": kind, "param": "amount", "detail": "is wrong"}
    return Reply(status, {"X-Request-Id": "req-1", **headers}, json.dumps({"error": error}).encode())


BUSY = refusal(429, "rate_limit_exceeded", "rate_limit_error", **{"Retry-After": "0"})
DOWN = refusal(503, "service_unavailable", "api_error")
RUNNING = refusal(409, "idempotency_key_in_progress", "idempotency_error", **{"Retry-After": "0"})
SLOW = refusal(408, "request_timeout", "validation_error")
PROXY = Reply(502, body=b"<html>Bad Gateway</html>")


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "FIRST_PAUSE", 0.001)


@pytest.fixture
def service() -> Iterator[Receiver]:
    with webhook_receiver.running_receiver() as running:
        yield running


def blocking(service: Receiver, operation: str) -> Any:
    with blocking_client(service.base_url) as client:
        return OPERATIONS[operation](client)


def awaiting(service: Receiver, operation: str) -> Any:
    async def run() -> Any:
        async with async_client(service.base_url) as client:
            return await OPERATIONS[operation](client)

    return asyncio.run(run())


OPERATIONS: dict[str, Callable[[Any], Any]] = {
    "read": lambda client: client.banks.list(),
    "pay": lambda client: client.sandbox.pay(qr_data="000201"),
    "delete": lambda client: client.webhooks.delete("wh_1"),
}
both_clients = pytest.mark.parametrize("send", [blocking, awaiting])


def sent(service: Receiver) -> list[ReceivedRequest]:
    return service.requests


@both_clients
@pytest.mark.parametrize("trouble", [BUSY, DOWN, RUNNING, SLOW, PROXY, CUT], ids=str)
def test_temporary_trouble_is_retried(service: Receiver, send: Send, trouble: Script) -> None:
    service.on("/v1/banks", trouble, trouble, trouble, BANKS)
    assert send(service, "read") == ()
    assert len(sent(service)) == 4


@both_clients
def test_options_of_one_call_leave_the_client_as_it_is(
    service: Receiver, send: Send, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(OPERATIONS, "once", lambda client: client.with_options(max_retries=0).banks.list())
    monkeypatch.setitem(OPERATIONS, "soon", lambda client: client.with_options(timeout=0.5).banks.list())
    service.on("/v1/banks", DOWN)
    with pytest.raises(errors.ServerError):
        send(service, "once")
    assert len(sent(service)) == 1
    service.on("/v1/banks", Reply(hangs=True), BANKS)
    assert send(service, "soon") == ()
    assert len(sent(service)) == 3


def test_client_with_options_closes_no_connections_of_the_first(service: Receiver) -> None:
    service.default = BANKS
    with ThaiQR(KEY, base_url=f"{service.base_url}/v1/v1") as client:
        with client.with_options(timeout=3, max_retries=1) as other:
            other.banks.list()
        client.banks.list()
        assert (client._settings.timeout, client._settings.max_retries) == (30.0, 3)
        assert (other._settings.timeout, other._settings.max_retries) == (3, 1)
    assert {each.path for each in sent(service)} == {"/v1/v1/banks"}
    assert service.connections == 1


@both_clients
def test_retries_of_a_post_have_the_same_idempotency_key(service: Receiver, send: Send) -> None:
    paid = Reply(body=b'{"bank_transaction_id": "sbp_1", "scenario": "paid", "accepted": true}')
    service.on("/sandbox/v1/payments", CUT, DOWN, paid)
    assert send(service, "pay").bank_transaction_id == "sbp_1"
    first, *others = [request.headers["idempotency-key"] for request in sent(service)]
    assert others == [first, first]
    send(service, "pay")
    assert sent(service)[-1].headers["idempotency-key"] != first


@both_clients
def test_delete_whose_answer_was_lost_is_done(service: Receiver, send: Send) -> None:
    gone = refusal(404, "webhook_not_found", "not_found")
    service.on("/v1/webhooks/wh_1", CUT, gone)
    assert send(service, "delete") is None
    with pytest.raises(errors.NotFoundError):
        send(service, "delete")


@both_clients
@pytest.mark.parametrize(
    ("reply", "kind"),
    [
        (refusal(400, "invalid_amount", "validation_error"), errors.ValidationError),
        (refusal(401, "authentication_failed", "authentication_error"), errors.AuthenticationError),
        (refusal(403, "insufficient_scope", "permission_error"), errors.PermissionDeniedError),
        (refusal(404, "payment_not_found", "not_found"), errors.NotFoundError),
        (refusal(402, "insufficient_funds", "payment_error"), errors.PaymentError),
        (refusal(409, "idempotency_key_reused", "idempotency_error"), errors.IdempotencyError),
        (refusal(418, "teapot", "new_error"), errors.ApiError),
    ],
)
def test_refusal_is_raised_at_once_as_the_class_of_its_type(
    service: Receiver, send: Send, reply: Reply, kind: type[errors.ApiError]
) -> None:
    service.default = reply
    with pytest.raises(errors.ApiError) as raised:
        send(service, "pay")
    error = raised.value
    assert type(error) is kind
    assert (error.status, error.param, error.detail) == (reply.status, "amount", "is wrong")
    assert (error.request_id, error.message) == ("req-1", "No.")
    assert error.idempotency_key == sent(service)[0].headers["idempotency-key"]
    assert len(sent(service)) == 1


def test_every_error_type_of_the_service_has_a_class() -> None:
    from tests.clients import openapi

    error = openapi.SCHEMAS["Error"]["properties"]["error"]["properties"]["type"]
    assert set(errors.BY_TYPE) == set(error["enum"])


@both_clients
def test_last_error_is_raised_after_all_retries(service: Receiver, send: Send) -> None:
    service.default = DOWN
    with pytest.raises(errors.ServerError, match="service_unavailable"):
        send(service, "read")
    assert len(sent(service)) == 4


@both_clients
def test_service_that_is_gone_is_a_network_error_with_the_key(service: Receiver, send: Send) -> None:
    service.default = CUT
    with pytest.raises(errors.NetworkError) as raised:
        send(service, "pay")
    assert {request.headers["idempotency-key"] for request in sent(service)} == {raised.value.idempotency_key}


@both_clients
def test_long_retry_after_is_left_to_the_caller(service: Receiver, send: Send) -> None:
    service.default = refusal(429, "rate_limit_exceeded", "rate_limit_error", **{"Retry-After": "61"})
    with pytest.raises(errors.RateLimitError) as raised:
        send(service, "read")
    assert (raised.value.retry_after, len(sent(service))) == (61, 1)


def test_pauses_grow_and_respect_retry_after(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    banks = ThaiQR(KEY, base_url="http://127.0.0.1").banks
    call = type(banks).list.build(banks)
    tries = attempts.Attempts(call, max_retries=9)
    pauses = [tries.after_error(httpx.ConnectError("refused")) for _ in range(9)]
    assert all(
        low <= pause <= 2 * low
        for pause, low in zip(pauses, [0.125, 0.25, 0.5, 1, 2, 4, 4, 4, 4], strict=True)
    )
    told = httpx.Response(429, headers={"Retry-After": "7"}, json={"error": {}})
    assert 7 <= (attempts.Attempts(call, max_retries=1).after_response(told) or 0) <= 7.25


@both_clients
@pytest.mark.parametrize(
    "reply",
    [
        Reply(body=b"<html>a login page</html>"),
        Reply(body=b'{"other": 1}'),
        Reply(body=b"[]"),
        Reply(302, {"Location": "https://elsewhere.example/"}),
    ],
)
def test_answer_that_is_not_of_this_api_is_refused(service: Receiver, send: Send, reply: Reply) -> None:
    service.default = reply
    with pytest.raises(errors.UnexpectedResponseError):
        send(service, "read")
    assert len(sent(service)) == 1


@both_clients
def test_request_says_who_asks(service: Receiver, send: Send) -> None:
    service.default = BANKS
    send(service, "read")
    headers = sent(service)[0].headers
    assert headers["authorization"] == f"Bearer {KEY}"
    assert headers["user-agent"].startswith(f"thaiqr-python/{thaiqr.__version__} ")


@both_clients
def test_warnings_of_the_service_are_logged(
    service: Receiver, send: Send, caplog: pytest.LogCaptureFixture
) -> None:
    service.default = Reply(200, {"Warning-Amount": "100 times the usual amount"}, BANKS.body)
    with caplog.at_level(logging.WARNING, "thaiqr"):
        send(service, "read")
    assert caplog.messages == ["GET /v1/banks: Warning-Amount: 100 times the usual amount"]


def test_unknown_fields_of_a_newer_service_are_kept(service: Receiver) -> None:
    body = b'{"bank_transaction_id": "sbp_1", "scenario": "new", "accepted": true, "fee": 3}'
    service.default = Reply(body=body)
    with blocking_client(service.base_url) as client:
        paid = client.sandbox.pay(qr_data="000201")
    assert (paid.scenario, paid.raw["fee"]) == ("new", 3)


def test_key_appears_in_no_text_about_the_client(service: Receiver) -> None:
    service.default = refusal(401, "authentication_failed", "authentication_error")
    with blocking_client(service.base_url) as client, pytest.raises(errors.ApiError) as raised:
        client.banks.list()
    texts = (repr(client), repr(client._settings), str(raised.value), repr(raised.value))
    assert not [text for text in texts if KEY in text or base64.b64encode(KEY.encode()).decode() in text]


@pytest.mark.parametrize(
    ("key", "url"),
    [
        ("", "http://x"),
        (KEY, ""),
        ("a b", "http://x"),
        ("ก", "http://x"),
        (KEY, "ftp://x"),
        (KEY, "pay.example.com"),
        (KEY, "https://x/?a=1"),
        (KEY, "http://[x"),
    ],
)
def test_missing_or_malformed_settings_are_refused(
    monkeypatch: pytest.MonkeyPatch, key: str, url: str
) -> None:
    for name in ("THAIQR_API_KEY", "THAIQR_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    for kind in (ThaiQR, AsyncThaiQR):
        with pytest.raises(ValueError, match=r"API_KEY|BASE_URL|API key|base URL") as raised:
            kind(key, base_url=url)
        assert KEY not in str(raised.value)


def test_settings_come_from_the_environment(monkeypatch: pytest.MonkeyPatch, service: Receiver) -> None:
    monkeypatch.setenv("THAIQR_API_KEY", KEY)
    monkeypatch.setenv("THAIQR_BASE_URL", service.base_url + "/")
    service.default = BANKS
    with ThaiQR() as client:
        client.banks.list()
    assert sent(service)[0].path == "/v1/banks"


@pytest.mark.parametrize("given", ["", ".", ".."])
def test_id_that_names_another_path_is_refused(service: Receiver, given: str) -> None:
    with blocking_client(service.base_url) as client, pytest.raises(ValueError, match="payment_id"):
        client.payments.get(given)
    assert not sent(service)


def test_id_is_quoted_in_the_path(service: Receiver) -> None:
    service.default = refusal(404, "payment_not_found", "not_found")
    with blocking_client(service.base_url) as client, pytest.raises(errors.NotFoundError):
        client.payments.get("a/../b?c#d e")
    assert sent(service)[0].path == "/v1/payments/a%2F..%2Fb%3Fc%23d%20e"
