import errno
import socket
import ssl
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from ipaddress import ip_network
from typing import Any

import pytest

from tests.webhook_receiver import Receiver, ReceiverConnection, Script
from tests.webhooks.certificates import Authority
from tests.webhooks.hostile_urls import resolving
from tests.webhooks.misbehaving_receivers import (
    listening,
    one_script_per_request,
    port_with_full_backlog,
    replies,
    then_closes,
    then_drips,
    then_stalls,
    unused_port,
)
from tests.webhooks.post_calls import (
    LONG_TIMEOUTS,
    LOOPBACK,
    MARGIN_MS,
    MEDIUM_TIMEOUTS,
    OK,
    post,
    post_bytes,
)
from tests.webhooks.test_dns import dead_resolver
from webhooks.http.client import PostResult, Timeouts
from webhooks.http.url_check import UrlPolicy


def test_closed_port_is_connect_refused() -> None:
    with unused_port() as port:
        assert post(f"http://127.0.0.1:{port}/").error == "connect_refused"


@pytest.mark.slow
def test_connection_without_response_ends_with_connect_timeout() -> None:
    with port_with_full_backlog() as port:
        answer = post(f"http://127.0.0.1:{port}/", timeouts=Timeouts(connect=0.2, total=60))
    assert (answer.error, answer.peer) == ("connect_timeout", None)
    assert answer.duration_ms < 200 + MARGIN_MS


def test_next_address_is_tried_if_an_address_fails() -> None:
    with listening(replies(OK)) as receiver:
        answer = post(receiver.url(host="hooks.shop.test"), resolver=resolving("127.0.0.2 127.0.0.1"))
    assert (answer.error, answer.peer) == ("", "127.0.0.1")


def test_host_without_ipv6_posts_to_the_ipv4_address(monkeypatch: pytest.MonkeyPatch) -> None:
    class Ipv4Socket(socket.socket):
        def __init__(self, family: int = -1, *args: Any, **options: Any) -> None:
            if family == socket.AF_INET6:
                raise OSError(errno.EAFNOSUPPORT, "no IPv6")
            super().__init__(family, *args, **options)

    monkeypatch.setattr(socket, "socket", Ipv4Socket)
    networks = (ip_network("127.0.0.0/8"), ip_network("::1/128"))
    with listening(replies(OK)) as receiver:
        answer = post(
            receiver.url(host="hooks.shop.test"),
            resolver=resolving("::1 127.0.0.1"),
            policy=UrlPolicy(allowed_networks=networks, allow_http=True),
        )
    assert (answer.error, answer.peer) == ("", "127.0.0.1")


@pytest.mark.parametrize(
    ("name", "days", "error"),
    [("hooks.shop.test", 1, ""), ("other.shop.test", 1, "tls_cert"), ("hooks.shop.test", -1, "tls_cert")],
)
def test_tls_certificate_for_another_host_name_is_refused(
    name: str, days: int, error: str, authority: Authority, tls: ssl.SSLContext
) -> None:
    with listening(replies(OK), tls=authority.server(name, days=days)) as receiver:
        answer = post(receiver.url(host="hooks.shop.test", scheme="https"), tls=tls)
    assert answer.error == error
    assert len(receiver.heads) == (0 if error else 1)


def test_certificate_of_unknown_authority_is_refused(authority: Authority) -> None:
    with listening(replies(OK), tls=authority.server("hooks.shop.test")) as receiver:
        answer = post(receiver.url(host="hooks.shop.test", scheme="https"))
    assert (answer.error, answer.peer, receiver.heads) == ("tls_cert", "127.0.0.1", [])


def test_old_tls_version_is_refused(authority: Authority, tls: ssl.SSLContext) -> None:
    server = authority.server("hooks.shop.test")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        server.minimum_version = server.maximum_version = ssl.TLSVersion.TLSv1_1
    with listening(replies(OK), tls=server) as receiver:
        answer = post(receiver.url(host="hooks.shop.test", scheme="https"), tls=tls)
    assert (answer.error, receiver.heads) == ("tls_handshake", [])


@pytest.mark.slow
def test_stalled_tls_handshake_ends_with_connect_timeout(tls: ssl.SSLContext) -> None:
    with listening(lambda line: line.wait(), reads=False) as receiver:
        url = receiver.url(host="hooks.shop.test", scheme="https")
        answer = post(url, tls=tls, timeouts=Timeouts(connect=0.25, total=60))
    assert answer.error == "connect_timeout"
    assert answer.duration_ms < 250 + MARGIN_MS


def resets(line: ReceiverConnection) -> None:
    # Only after the client has started the handshake, or Python does not close its end.
    line.sock.recv(1)
    line.reset()


@pytest.mark.parametrize(
    "script", [lambda line: line.hang_up(), resets, then_closes(b"HTTP/1.1 400 Bad Request\r\n\r\n")]
)
def test_failed_tls_handshake_is_error_tls_handshake(script: Script, tls: ssl.SSLContext) -> None:
    with listening(script, reads=False) as receiver:
        answer = post(receiver.url(host="hooks.shop.test", scheme="https"), tls=tls)
    assert answer.error == "tls_handshake"


@pytest.mark.slow
def test_deadline_holds_for_tls_responses(authority: Authority, tls: ssl.SSLContext) -> None:
    script = then_drips(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    with listening(script, tls=authority.server("hooks.shop.test")) as receiver:
        answer = post(receiver.url(host="hooks.shop.test", scheme="https"), tls=tls, timeouts=MEDIUM_TIMEOUTS)
    assert (answer.status, answer.error) == (None, "timeout")
    assert answer.duration_ms < MEDIUM_TIMEOUTS.total * 1000 + MARGIN_MS


# --- idle connections


def test_posts_of_several_threads_share_one_connection() -> None:
    with listening(replies(OK)) as receiver:
        for _ in range(3):
            thread = threading.Thread(target=post, args=(receiver.url(),))
            thread.start()
            thread.join()
        assert post(receiver.url()).error == ""
    assert (receiver.connections, len(receiver.heads)) == (1, 4)


def test_tls_connections_are_pooled(authority: Authority, tls: ssl.SSLContext) -> None:
    with listening(replies(OK), tls=authority.server("hooks.shop.test")) as receiver:
        for _ in range(3):
            assert post(receiver.url(host="hooks.shop.test", scheme="https"), tls=tls).error == ""
    assert receiver.connections == 1


def test_pooled_connection_is_not_used_for_another_address() -> None:
    with listening(replies(OK)) as receiver:
        url = receiver.url(host="hooks.shop.test")
        assert post(url, resolver=resolving("127.0.0.1")).peer == "127.0.0.1"
        assert post(url, resolver=resolving("127.0.0.1")).peer == "127.0.0.1"
        assert receiver.connections == 1
        assert post(url, resolver=resolving("127.0.0.2")).error == "connect_refused"
    assert len(receiver.heads) == 2


@contextmanager
def hanging_up_on_the_second_request(parting: bytes) -> Iterator[Receiver]:
    """Every connection answers once, and closes when it is used again."""
    answered: set[int] = set()

    def script(line: ReceiverConnection) -> None:
        if id(line) in answered:
            line.send(parting)
            line.hang_up()
        else:
            answered.add(id(line))
            line.send(OK)

    with listening(script) as receiver:
        yield receiver


def test_closed_pooled_connection_is_replaced() -> None:
    with hanging_up_on_the_second_request(b"") as receiver:
        assert [post(receiver.url()).error for _ in range(2)] == ["", ""]
    assert (receiver.connections, len(receiver.heads)) == (2, 3)


def test_request_is_not_repeated_after_partial_response() -> None:
    with hanging_up_on_the_second_request(b"HTTP/1.1 2") as receiver:
        assert [post(receiver.url()).error for _ in range(2)] == ["", "protocol"]
    assert len(receiver.heads) == 2


@pytest.mark.slow
def test_request_is_not_repeated_after_timeout() -> None:
    with listening(one_script_per_request(replies(OK), then_stalls(b""))) as receiver:
        errors = [post(receiver.url(), timeouts=each).error for each in (LONG_TIMEOUTS, MEDIUM_TIMEOUTS)]
    assert errors == ["", "timeout"]
    assert len(receiver.heads) == 2


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nok",
        b"HTTP/1.1 200 OK\r\nContent-Length: 16384\r\n\r\n" + bytes(16384),
    ],
)
def test_connection_is_pooled_only_after_a_complete_response(answer: bytes) -> None:
    with listening(replies(answer)) as receiver:
        assert [post(receiver.url()).error for _ in range(2)] == ["", ""]
    assert receiver.connections == 2


@pytest.mark.parametrize(("setting", "value"), [("MAX_IDLE_SECONDS", 0.0), ("MAX_IDLE", 0)])
def test_idle_connections_are_few_and_short_lived(
    setting: str, value: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"webhooks.http.connections.{setting}", value)
    with listening(replies(OK)) as receiver:
        assert [post(receiver.url()).error for _ in range(2)] == ["", ""]
    assert receiver.connections == 2


def test_many_threads_can_post_concurrently() -> None:
    answers: list[PostResult] = []
    with listening(replies(OK)) as receiver:
        threads = [threading.Thread(target=lambda: answers.append(post(receiver.url()))) for _ in range(32)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [answer.error for answer in answers] == [""] * 32


@pytest.mark.parametrize("surplus", [OK, b"x"])
def test_connection_with_unrequested_bytes_is_not_used_again(surplus: bytes) -> None:
    """A second response could be taken for that of the next post."""
    with listening(replies(OK + surplus)) as receiver:
        assert [post(receiver.url()).error for _ in range(3)] == ["", "", ""]
    assert receiver.connections == 3


def test_idle_connection_whose_receiver_goes_on_sending_is_closed() -> None:
    is_idle, has_ended = threading.Event(), threading.Event()

    def floods_when_idle(line: ReceiverConnection) -> None:
        line.send(OK)
        is_idle.wait(60)
        try:
            while True:
                line.send(bytes(65536))
        finally:
            has_ended.set()

    with listening(floods_when_idle) as receiver:
        assert post(receiver.url()).error == ""
        is_idle.set()
        assert has_ended.wait(60)
    assert receiver.sent < 20_000_000


@pytest.mark.parametrize(
    "framing",
    [
        b"Content-Length: 2\r\nTransfer-Encoding: chunked",
        b"Transfer-Encoding: chunked, identity",
        b"Transfer-Encoding: xchunked",
    ],
)
def test_connection_with_ambiguous_body_length_is_not_used_again(framing: bytes) -> None:
    answer = b"HTTP/1.1 200 OK\r\n" + framing + b"\r\n\r\n2\r\nok\r\n0\r\n\r\n"
    with listening(then_closes(answer)) as receiver:
        assert [post(receiver.url()).error for _ in range(2)] == ["", ""]
    assert (receiver.connections, len(receiver.heads)) == (2, 2)


def test_response_before_a_reset_counts() -> None:
    def refuses_and_resets(line: ReceiverConnection) -> None:
        line.send(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
        line.reset()

    with listening(refuses_and_resets) as receiver:
        assert [post(receiver.url()).status for _ in range(20)] == [413] * 20


def test_hanging_lookup_does_not_delay_other_posts() -> None:
    calls: list[str] = []
    answers: list[PostResult] = []
    with dead_resolver(calls) as dead, listening(replies(OK)) as receiver:
        waiting = [
            threading.Thread(
                target=lambda url=f"http://name{number}.test:{receiver.port}/": answers.append(
                    post(url, resolver=dead, timeouts=Timeouts(connect=60, total=60), merchant_id="greedy")
                )
            )
            for number in range(4)
        ]
        for thread in waiting:
            thread.start()
        assert post(receiver.url(host="shop.test"), merchant_id="other").error == ""
        assert answers == []
    for thread in waiting:
        thread.join()
    assert [each.error for each in answers] == ["blocked"] * 4


def test_head_of_a_post_cannot_contain_a_line_break() -> None:
    with listening(replies(OK)) as receiver, pytest.raises(ValueError, match="not allowed"):
        post_bytes(receiver.url(), b"", headers={"webhook-id": "a\r\nHost: b"}, policy=LOOPBACK)
    assert receiver.heads == []


@contextmanager
def flooding(tls: ssl.SSLContext) -> Iterator[tuple[int, threading.Event]]:
    """A port that sends prepared session tickets after the handshake.

    The event is set when it starts to send them.
    """
    started = threading.Event()
    accepted: list[socket.socket] = []

    def run() -> None:
        sock, _ = server.accept()
        accepted.append(sock)
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        session = tls.wrap_bio(incoming, outgoing, server_side=True)
        with sock:
            while True:
                try:
                    session.do_handshake()
                    break
                except ssl.SSLWantReadError:
                    sock.sendall(outgoing.read())
                    incoming.write(sock.recv(65536))
            started.set()
            with suppress(OSError):
                sock.sendall(outgoing.read())
                while sock.recv(65536):  # a fast client has read all tickets: it must still wait
                    pass

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=run)
        thread.start()
        yield server.getsockname()[1], started
        with suppress(OSError):
            accepted[0].shutdown(socket.SHUT_RDWR)
        thread.join()


@pytest.mark.slow
def test_flood_of_tls_session_tickets_ends_at_deadline(authority: Authority, tls: ssl.SSLContext) -> None:
    server = authority.server("hooks.shop.test")
    server.num_tickets = 100_000
    with flooding(server) as (port, started):
        url = f"https://hooks.shop.test:{port}/"
        answer = post(url, tls=tls, timeouts=Timeouts(connect=60, total=MEDIUM_TIMEOUTS.total))
        assert started.wait(60)
    assert (answer.status, answer.error) == (None, "timeout")
    assert answer.duration_ms < MEDIUM_TIMEOUTS.total * 1000 + MARGIN_MS
