import ssl
import warnings

import pytest

from tests.webhooks.certificates import Authority
from tests.webhooks.hostile_urls import resolving
from tests.webhooks.misbehaving_receivers import (
    ReceiverConnection,
    Script,
    listening,
    port_with_full_backlog,
    replies,
    then_closes,
    then_drips,
    unused_port,
)
from tests.webhooks.post_calls import MARGIN_MS, MEDIUM_TIMEOUTS, OK, post
from webhooks.http.client import Timeouts


def test_closed_port_is_connect_refused() -> None:
    with unused_port() as port:
        assert post(f"http://127.0.0.1:{port}/").error == "connect_refused"


def test_connection_without_response_ends_with_connect_timeout() -> None:
    with port_with_full_backlog() as port:
        answer = post(f"http://127.0.0.1:{port}/", timeouts=Timeouts(connect=0.2, total=60))
    assert (answer.error, answer.peer) == ("connect_timeout", None)
    assert answer.duration_ms < 200 + MARGIN_MS


def test_next_address_is_tried_if_one_fails() -> None:
    with listening(replies(OK)) as receiver:
        answer = post(receiver.url("hooks.shop.test"), resolver=resolving("127.0.0.2 127.0.0.1"))
    assert (answer.error, answer.peer) == ("", "127.0.0.1")


@pytest.mark.parametrize(
    ("name", "days", "error"),
    [("hooks.shop.test", 1, ""), ("other.shop.test", 1, "tls_cert"), ("hooks.shop.test", -1, "tls_cert")],
)
def test_the_certificate_must_be_valid_for_the_name(
    name: str, days: int, error: str, authority: Authority, tls: ssl.SSLContext
) -> None:
    with listening(replies(OK), tls=authority.server(name, days=days)) as receiver:
        answer = post(receiver.url("hooks.shop.test", scheme="https"), tls=tls)
    assert answer.error == error
    assert len(receiver.heads) == (0 if error else 1)


def test_certificate_of_unknown_authority_is_refused(authority: Authority) -> None:
    with listening(replies(OK), tls=authority.server("hooks.shop.test")) as receiver:
        answer = post(receiver.url("hooks.shop.test", scheme="https"))
    assert (answer.error, answer.peer, receiver.heads) == ("tls_cert", "127.0.0.1", [])


def test_an_old_tls_version_is_refused(authority: Authority, tls: ssl.SSLContext) -> None:
    server = authority.server("hooks.shop.test")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        server.minimum_version = server.maximum_version = ssl.TLSVersion.TLSv1_1
    with listening(replies(OK), tls=server) as receiver:
        answer = post(receiver.url("hooks.shop.test", scheme="https"), tls=tls)
    assert (answer.error, receiver.heads) == ("tls_handshake", [])


@pytest.mark.slow
def test_stalled_tls_handshake_ends_with_connect_timeout(tls: ssl.SSLContext) -> None:
    with listening(lambda line: line.wait(), reads=False) as receiver:
        url = receiver.url("hooks.shop.test", scheme="https")
        answer = post(url, tls=tls, timeouts=Timeouts(connect=0.25, total=60))
    assert answer.error == "connect_timeout"
    assert answer.duration_ms < 250 + MARGIN_MS


def resets(line: ReceiverConnection) -> None:
    # Only after the client has begun, or Python forgets to close its end.
    line.sock.recv(1)
    line.reset()


@pytest.mark.parametrize(
    "script", [lambda line: line.hang_up(), resets, then_closes(b"HTTP/1.1 400 Bad Request\r\n\r\n")]
)
def test_failed_tls_handshake_has_its_own_error(script: Script, tls: ssl.SSLContext) -> None:
    with listening(script, reads=False) as receiver:
        answer = post(receiver.url("hooks.shop.test", scheme="https"), tls=tls)
    assert answer.error == "tls_handshake"


@pytest.mark.slow
def test_deadline_holds_for_tls_responses(authority: Authority, tls: ssl.SSLContext) -> None:
    script = then_drips(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    with listening(script, tls=authority.server("hooks.shop.test")) as receiver:
        answer = post(receiver.url("hooks.shop.test", scheme="https"), tls=tls, timeouts=MEDIUM_TIMEOUTS)
    assert (answer.status, answer.error) == (None, "timeout")
    assert answer.duration_ms < MEDIUM_TIMEOUTS.total * 1000 + MARGIN_MS
