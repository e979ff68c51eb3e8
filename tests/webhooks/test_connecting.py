import ssl
import warnings

import pytest

from tests.webhooks.certificates import Authority
from tests.webhooks.corpus import resolving
from tests.webhooks.posting import ENDURING, MARGIN_MS, OK, post
from tests.webhooks.receivers import (
    Line,
    Script,
    full_backlog,
    listening,
    replies,
    then_drips,
    then_hangs_up,
    unused_port,
)
from webhooks.client import Timeouts


def test_nobody_listening_is_refused() -> None:
    with unused_port() as port:
        assert post(f"http://127.0.0.1:{port}/").error == "connect_refused"


def test_a_silent_network_ends_with_the_connect_timeout() -> None:
    with full_backlog() as port:
        answer = post(f"http://127.0.0.1:{port}/", timeouts=Timeouts(connect=0.2, total=60))
    assert (answer.error, answer.peer) == ("connect_timeout", None)
    assert answer.duration_ms < 200 + MARGIN_MS


def test_the_next_address_is_tried_when_one_is_dead() -> None:
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


def test_an_unknown_authority_is_not_trusted(authority: Authority) -> None:
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


def test_a_handshake_that_stalls_ends_with_the_connect_timeout(tls: ssl.SSLContext) -> None:
    with listening(lambda line: line.wait(), reads=False) as receiver:
        url = receiver.url("hooks.shop.test", scheme="https")
        answer = post(url, tls=tls, timeouts=Timeouts(connect=0.25, total=60))
    assert answer.error == "connect_timeout"
    assert answer.duration_ms < 250 + MARGIN_MS


def resets(line: Line) -> None:
    # Only after the client has begun, or Python forgets to close its end.
    line.sock.recv(1)
    line.reset()


@pytest.mark.parametrize(
    "script",
    [
        lambda line: line.hang_up(),
        resets,
        then_hangs_up(b"HTTP/1.1 400 Bad Request\r\n\r\n"),
    ],
)
def test_a_handshake_that_fails_is_told_apart(script: Script, tls: ssl.SSLContext) -> None:
    with listening(script, reads=False) as receiver:
        answer = post(receiver.url("hooks.shop.test", scheme="https"), tls=tls)
    assert answer.error == "tls_handshake"


def test_tls_answers_keep_the_deadline_too(authority: Authority, tls: ssl.SSLContext) -> None:
    script = then_drips(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    with listening(script, tls=authority.server("hooks.shop.test")) as receiver:
        answer = post(receiver.url("hooks.shop.test", scheme="https"), tls=tls, timeouts=ENDURING)
    assert (answer.status, answer.error) == (None, "timeout")
    assert answer.duration_ms < ENDURING.total * 1000 + MARGIN_MS
