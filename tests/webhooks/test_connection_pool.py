import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.webhooks.certificates import Authority
from tests.webhooks.hostile_urls import resolving
from tests.webhooks.misbehaving_receivers import (
    Receiver,
    ReceiverConnection,
    listening,
    one_script_per_request,
    replies,
    then_stalls,
)
from tests.webhooks.post_calls import LONG_TIMEOUTS, MEDIUM_TIMEOUTS, OK, post
from webhooks.http import client
from webhooks.http.client import PostResult


def test_posts_share_one_connection_even_between_threads() -> None:
    with listening(replies(OK)) as receiver:
        for _ in range(3):
            thread = threading.Thread(target=post, args=(receiver.url(),))
            thread.start()
            thread.join()
        assert post(receiver.url()).error == ""
    assert (receiver.connections, len(receiver.heads)) == (1, 4)


def test_tls_connections_are_kept_too(authority: Authority, tls: ssl.SSLContext) -> None:
    with listening(replies(OK), tls=authority.server("hooks.shop.test")) as receiver:
        for _ in range(3):
            assert post(receiver.url("hooks.shop.test", scheme="https"), tls=tls).error == ""
    assert receiver.connections == 1


def test_pooled_connection_is_not_used_for_another_address() -> None:
    with listening(replies(OK)) as receiver:
        url = receiver.url("hooks.shop.test")
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
def test_a_connection_is_kept_only_after_a_whole_answer(answer: bytes) -> None:
    with listening(replies(answer)) as receiver:
        assert [post(receiver.url()).error for _ in range(2)] == ["", ""]
    assert receiver.connections == 2


@pytest.mark.parametrize(("setting", "value"), [("MAX_IDLE_SECONDS", 0.0), ("MAX_IDLE", 0)])
def test_idle_connections_are_few_and_short_lived(
    setting: str, value: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"webhooks.http.connection_pool.{setting}", value)
    with listening(replies(OK)) as receiver:
        assert [post(receiver.url()).error for _ in range(2)] == ["", ""]
    assert receiver.connections == 2


def test_cleared_pool_has_no_connections() -> None:
    with listening(replies(OK)) as receiver:
        post(receiver.url())
        client.IDLE_CONNECTIONS.clear()
        post(receiver.url())
    assert receiver.connections == 2


def test_many_threads_post_at_once() -> None:
    answers: list[PostResult] = []
    with listening(replies(OK)) as receiver:
        threads = [threading.Thread(target=lambda: answers.append(post(receiver.url()))) for _ in range(32)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [answer.error for answer in answers] == [""] * 32
