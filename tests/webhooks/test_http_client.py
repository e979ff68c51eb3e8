import ssl
from pathlib import Path
from typing import Any

import pytest
from pytest_django import Settings

from core.tls import ca_file
from tests.webhooks.certificates import Authority
from tests.webhooks.hostile_urls import case_name, cases
from tests.webhooks.misbehaving_receivers import listening, replies, then_floods, unused_port
from tests.webhooks.post_calls import OK, post, post_to
from webhooks.http import client


def test_webhook_body_and_headers_arrive_byte_for_byte() -> None:
    answer, receiver = post_to(replies(OK))
    assert answer.status == 200
    assert answer.error == ""
    assert answer.excerpt == "ok"
    assert answer.peer == "127.0.0.1"
    assert [each.body for each in receiver.requests] == [b'{"a":1}']
    request_line, *headers = receiver.heads[0].split("\r\n")
    assert request_line == "POST /hook HTTP/1.1"
    assert {"webhook-id: evt_1", "Accept-Encoding: identity", "Content-Length: 7"} < set(headers)
    assert f"Host: 127.0.0.1:{receiver.port}" in headers


def test_webhook_path_and_query_are_sent_as_checked() -> None:
    with listening(replies(OK)) as receiver:
        post(f"http://127.0.0.1:{receiver.port}/a/%7e/%0d%0a?q=%41&ร=1")
    assert receiver.heads[0].startswith("POST /a/%7E/%0D%0A?q=%41&%E0%B8%A3=1 HTTP/1.1\r\n")


def test_tls_verifies_host_name_of_url(authority: Authority, tls: ssl.SSLContext) -> None:
    with listening(replies(OK), tls=authority.server("hooks.shop.test")) as receiver:
        answer = post(receiver.url(host="hooks.shop.test", scheme="https"), tls=tls)
    assert answer.error == ""
    assert receiver.names == ["hooks.shop.test"]
    assert f"Host: hooks.shop.test:{receiver.port}" in receiver.heads[0]


def test_cookies_are_not_kept() -> None:
    with listening(replies(OK.replace(b"\r\n", b"\r\nSet-Cookie: a=b\r\n", 1))) as receiver:
        post(receiver.url())
        post(receiver.url())
    assert len(receiver.heads) == 2
    assert "cookie" not in "".join(receiver.heads).lower()


@pytest.mark.parametrize("case", cases(category=("environment",)), ids=case_name)
def test_proxy_environment_variables_are_ignored(
    case: dict[str, Any], authority: Authority, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    (tmp_path / ".netrc").write_text(case["note"].get("netrc", ""))
    for name, value in case["note"].get("env", {}).items():
        monkeypatch.setenv(name, value)
        monkeypatch.setenv(name.lower(), value)
    fresh = client.tls_context.__wrapped__(str(authority.ca_file))
    with listening(replies(OK), tls=authority.server("allowed.test")) as receiver:
        answer = post(receiver.url(host="allowed.test", scheme="https"), tls=fresh)
    assert (answer.error, len(receiver.heads)) == ("", 1)
    assert "authorization" not in receiver.heads[0].lower()
    assert [path.name for path in tmp_path.iterdir()] == [".netrc"]


def test_public_certificate_authorities_are_trusted_by_default() -> None:
    public = client.tls_context(ca_file())
    assert public is client.tls_context(ca_file())
    assert len(public.get_ca_certs()) > 50
    assert public.check_hostname


def test_unreadable_own_authorities_are_no_failure_of_the_endpoint(settings: Settings) -> None:
    settings.CA_BUNDLE = "/nowhere/authorities.pem"
    with unused_port() as port, pytest.raises(FileNotFoundError):
        post(f"http://127.0.0.1:{port}/")


@pytest.mark.parametrize(
    ("status", "error"),
    [
        ("200 OK", ""),
        ("204 No Content", ""),
        ("299 Fine", ""),
        ("304 Not Modified", "http_3xx"),
        ("404 Not Found", "http_4xx"),
        ("410 Gone", "http_4xx"),
        ("503 Busy", "http_5xx"),
        ("101 Switching Protocols", "protocol"),
        ("999 Odd", "protocol"),
    ],
)
def test_only_a_2xx_status_is_a_successful_post(status: str, error: str) -> None:
    answer, _ = post_to(replies(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n".encode()))
    assert (answer.status, answer.error) == (int(status[:3]), error)


def test_interim_response_100_is_skipped() -> None:
    answer, _ = post_to(replies(b"HTTP/1.1 100 Continue\r\n\r\n" + OK))
    assert (answer.status, answer.excerpt) == (200, "ok")


def test_retry_after_header_is_returned() -> None:
    raw = b"HTTP/1.1 429 Slow\r\nretry-after: Wed, 21 Oct 2026 07:28:00 GMT\r\nContent-Length: 0\r\n\r\n"
    answer, _ = post_to(replies(raw))
    assert answer.retry_after == "Wed, 21 Oct 2026 07:28:00 GMT"


@pytest.mark.parametrize(
    ("body", "excerpt"),
    [
        (b"", ""),
        ("รับแล้ว".encode(), "รับแล้ว"),
        (b"a\x00b", "ab"),
        (b"a\xffb", "a\ufffdb"),
        (b"x" * 5000, "x" * 4096),
        (b"x" * 20_000, "x" * 4096),
    ],
)
def test_response_excerpt_is_short_text_without_nul(body: bytes, excerpt: str) -> None:
    answer, _ = post_to(replies(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body)))
    assert answer.excerpt == excerpt


def test_chunked_response_is_read() -> None:
    chunked = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n1\r\n!\r\n0\r\n\r\n"
    with listening(replies(chunked)) as receiver:
        assert [post(receiver.url()).excerpt for _ in range(2)] == ["ok!", "ok!"]
    assert receiver.connections == 1


@pytest.mark.parametrize("case", cases(category=("redirect",)), ids=case_name)
def test_webhook_redirect_is_not_followed(case: dict[str, Any], dialled: list[str]) -> None:
    headers = case["note"].get("headers", {"Location": case["note"].get("location")})
    lines = [f"{name}: {value}" for name, value in headers.items()]
    head = [f"HTTP/1.1 {case['note']['status']} Elsewhere", *lines, "Content-Length: 0", "", ""]
    answer, receiver = post_to(replies("\r\n".join(head).encode()))
    assert answer.error == ("" if case["note"]["status"] == 200 else "http_3xx")
    assert (len(receiver.heads), dialled) == (1, ["127.0.0.1"])


def test_redirect_to_private_address_is_not_followed_and_body_is_kept() -> None:
    head = b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\n\r\n"
    answer, receiver = post_to(then_floods(head, b"x" * 65536))
    assert (answer.status, answer.error) == (302, "http_3xx")
    assert receiver.sent < 20_000_000
