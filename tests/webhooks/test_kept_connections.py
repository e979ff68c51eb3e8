import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import requests

from tests.webhooks.certificates import Authority
from tests.webhooks.corpus import resolving
from tests.webhooks.posting import ENDURING, OK, PATIENT, post
from tests.webhooks.receivers import Line, Receiver, in_turn, listening, replies, then_stalls
from webhooks import client
from webhooks.client import Answer
from webhooks.transport import Adapter, Session


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


def test_a_connection_is_not_kept_for_another_address_of_the_name() -> None:
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

    def script(line: Line) -> None:
        if id(line) in answered:
            line.send(parting)
            line.hang_up()
        else:
            answered.add(id(line))
            line.send(OK)

    with listening(script) as receiver:
        yield receiver


def test_a_kept_connection_that_died_is_replaced_at_once() -> None:
    with hanging_up_on_the_second_request(b"") as receiver:
        assert [post(receiver.url()).error for _ in range(2)] == ["", ""]
    assert (receiver.connections, len(receiver.heads)) == (2, 3)


def test_a_kept_connection_that_began_to_answer_is_not_asked_again() -> None:
    with hanging_up_on_the_second_request(b"HTTP/1.1 2") as receiver:
        assert [post(receiver.url()).error for _ in range(2)] == ["", "protocol"]
    assert len(receiver.heads) == 2


def test_a_kept_connection_that_stalls_is_not_asked_again() -> None:
    with listening(in_turn(replies(OK), then_stalls(b""))) as receiver:
        errors = [post(receiver.url(), timeouts=each).error for each in (PATIENT, ENDURING)]
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


@pytest.mark.parametrize(("setting", "value"), [("LONGEST_IDLE", 0.0), ("MOST_IDLE", 0)])
def test_idle_connections_are_few_and_short_lived(
    setting: str, value: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"webhooks.idle.{setting}", value)
    with listening(replies(OK)) as receiver:
        assert [post(receiver.url()).error for _ in range(2)] == ["", ""]
    assert receiver.connections == 2


def test_closing_a_session_closes_what_is_idle() -> None:
    with listening(replies(OK)) as receiver:
        post(receiver.url())
        Session(client.ADAPTER).close()
        post(receiver.url())
    assert receiver.connections == 2


def test_the_adapter_sends_nothing_that_was_not_judged() -> None:
    request = requests.Request("POST", "https://hooks.shop.test/").prepare()
    with pytest.raises(TypeError, match="Post"):
        Adapter().send(request)


def test_many_threads_post_at_once() -> None:
    answers: list[Answer] = []
    with listening(replies(OK)) as receiver:
        threads = [threading.Thread(target=lambda: answers.append(post(receiver.url()))) for _ in range(32)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert [answer.error for answer in answers] == [""] * 32
