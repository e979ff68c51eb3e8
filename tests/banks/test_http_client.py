"""HTTP requests to banks end at their deadline, also if the answer is endless."""

import threading
from pathlib import Path

import pytest
from pytest_django import Settings

from banks import http_client
from banks.http_client import NoResponse, NotSent
from core.deadlines import Deadline
from core.observing import measurements
from tests.webhook_receiver import Script
from tests.webhooks.certificates import Authority
from tests.webhooks.misbehaving_receivers import (
    listening,
    replies,
    then_drips,
    then_floods,
    then_stalls,
    unused_port,
)

pytestmark = pytest.mark.slow

HEAD = b"HTTP/1.1 200 OK\r\n"
# Longer than a test: only the deadline ends the request.
TIMEOUT = (30.0, 60.0)
ENDLESS: dict[str, Script] = {
    "silence": then_stalls(b""),
    "half a head": then_stalls(HEAD + b"X-Half: "),
    "a head that drips": then_drips(HEAD + b"X-Slow: "),
    "headers without end": then_drips(HEAD, drop=b"X: y\r\n"),
    "a body that drips": then_drips(HEAD + b"Content-Length: 1000000\r\n\r\n"),
    "a chunked body that drips": then_drips(HEAD + b"Transfer-Encoding: chunked\r\n\r\n", drop=b"1\r\n \r\n"),
    "an answer, and then spaces": then_drips(HEAD + b"\r\n{}", drop=b" "),
    "an answer, and Connection: close": then_drips(HEAD + b"Connection: close\r\n\r\n{}", drop=b" "),
    "more than any answer": then_floods(HEAD + b"\r\n", b" " * 65536),
}


@pytest.mark.parametrize("name", ENDLESS)
def test_endless_response_is_ended_at_deadline(name: str) -> None:
    with listening(ENDLESS[name]) as bank, pytest.raises(NoResponse):
        http_client.request(
            "POST",
            bank.url(),
            bank="test",
            json={},
            timeout=TIMEOUT,
            ends_at=Deadline.after(0.3),
            is_internal=True,
        )


@pytest.mark.parametrize("name", ["half a head", "a body that drips", "an answer, and then spaces"])
def test_endless_tls_response_is_ended_at_deadline(tmp_path: Path, name: str) -> None:
    authority = Authority(tmp_path)
    with listening(ENDLESS[name], tls=authority.server("localhost")) as bank, pytest.raises(NoResponse):
        http_client.request(
            "POST",
            bank.url(host="localhost", scheme="https"),
            bank="test",
            json={},
            timeout=TIMEOUT,
            ends_at=Deadline.after(1),
            is_internal=True,
            verify=str(authority.ca_file),
        )
    assert bank.names == ["localhost"]


def test_bank_with_a_certificate_of_an_own_authority_is_trusted_by_setting(
    tmp_path: Path, settings: Settings
) -> None:
    authority = Authority(tmp_path)
    answer = replies(HEAD + b"Content-Length: 2\r\n\r\n{}")

    def ask() -> int:
        with listening(answer, tls=authority.server("localhost")) as bank:
            url = bank.url(host="localhost", scheme="https")
            return http_client.request("GET", url, bank="test", timeout=TIMEOUT, is_internal=True).status

    with pytest.raises(NoResponse):
        ask()
    settings.CA_BUNDLE = str(authority.ca_file)
    assert ask() == 200


def test_default_deadline_is_sum_of_timeouts() -> None:
    with listening(ENDLESS["a body that drips"]) as bank, pytest.raises(NoResponse):
        http_client.request("POST", bank.url(), bank="test", json={}, timeout=(0.1, 0.2), is_internal=True)


def test_complete_response_is_returned_byte_for_byte() -> None:
    with listening(replies(HEAD + b'Content-Length: 11\r\n\r\n{"a": "b" }')) as bank:
        response = http_client.request(
            "POST", bank.url(), bank="test", json={}, timeout=TIMEOUT, is_internal=True
        )
    assert (response.status, response.data, response.body) == (200, {"a": "b"}, b'{"a": "b" }')


def test_request_without_a_thread_for_its_deadline_is_not_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(timer: threading.Timer) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Timer, "start", refuse)
    with listening(replies(HEAD + b"Content-Length: 2\r\n\r\n{}")) as bank, pytest.raises(NotSent):
        http_client.request("POST", bank.url(), bank="test", json={}, timeout=TIMEOUT, is_internal=True)


def test_calls_are_measured_by_bank_and_result() -> None:
    measurements.OF_PROCESS.take()
    with listening(replies(HEAD + b"Content-Length: 2\r\n\r\n{}")) as bank:
        http_client.request("GET", bank.url(), bank="scb", timeout=TIMEOUT, is_internal=True)
    with unused_port() as port, pytest.raises(NotSent):
        url = f"http://127.0.0.1:{port}/"
        http_client.request("GET", url, bank="scb", timeout=TIMEOUT, is_internal=True)
    found = measurements.OF_PROCESS.take()
    assert sorted(key.labels for key in found) == [("scb", "http_2xx"), ("scb", "unreachable")]
    assert {key.name for key in found} == {measurements.BANK_CALL}
