import socket
import threading
from typing import Any

import pytest

from tests.webhooks.hostile_urls import PUBLIC, answers_of, case_name, cases, resolving
from tests.webhooks.misbehaving_receivers import listening, replies
from tests.webhooks.post_calls import MARGIN_MS, OK, post
from webhooks.http.client import Timeouts
from webhooks.http.url_check import UrlPolicy


@pytest.mark.parametrize("case", cases(expect=("reject_connect",)), ids=case_name)
def test_blocked_dns_answers_are_not_dialled(case: dict[str, Any], dialled: list[str]) -> None:
    rounds = answers_of(case)
    resolver = resolving(*rounds)
    for _ in rounds:
        assert post(case["url"], policy=UrlPolicy(), resolver=resolver).error in ("blocked", "dns")
    assert dialled == []


@pytest.mark.parametrize("case", cases(expect=("reject_registration",)), ids=case_name)
def test_a_refused_url_forced_into_the_database_is_not_dialled(
    case: dict[str, Any], dialled: list[str]
) -> None:
    resolver = resolving(*answers_of(case))
    assert post(case["url"], policy=UrlPolicy(), resolver=resolver).error == "blocked"
    assert dialled == []


def test_name_that_becomes_private_is_not_dialled(dialled: list[str]) -> None:
    resolver = resolving(PUBLIC, "127.0.0.1", f"{PUBLIC} 127.0.0.1")
    answers = [post("https://rebind.test/", policy=UrlPolicy(), resolver=resolver) for _ in range(3)]
    assert [answer.error for answer in answers] == ["connect_refused", "blocked", "blocked"]
    assert dialled == [PUBLIC]


def test_peer_other_than_checked_address_gets_no_request(monkeypatch: pytest.MonkeyPatch) -> None:
    connect = socket.socket.connect
    with listening(replies(OK), reads=True) as receiver:
        monkeypatch.setattr(
            socket.socket, "connect", lambda sock, _: connect(sock, ("127.0.0.1", receiver.port))
        )
        answer = post("https://hooks.shop.test/", policy=UrlPolicy(), resolver=resolving(PUBLIC))
    assert (answer.error, answer.peer, receiver.heads) == ("blocked", "127.0.0.1", [])


def test_pooled_connection_is_not_used_after_address_is_blocked() -> None:
    with listening(replies(OK)) as receiver:
        assert post(receiver.url("hooks.shop.test")).error == ""
        elsewhere = resolving("127.0.0.2")
        assert post(receiver.url("hooks.shop.test"), resolver=elsewhere).error == "connect_refused"
        assert post(receiver.url("hooks.shop.test"), policy=UrlPolicy()).error == "blocked"
    assert len(receiver.heads) == 1


def test_silent_name_server_is_dns_error() -> None:
    called, released = threading.Event(), threading.Event()
    asked: list[threading.Thread] = []

    def silent(*_: Any, **__: Any) -> list[Any]:
        asked.append(threading.current_thread())
        called.set()
        released.wait()
        return []

    answer = post("https://hooks.shop.test/", resolver=silent, timeouts=Timeouts(total=0.1))
    assert called.wait(60)
    released.set()
    asked[0].join()
    assert (answer.error, answer.status, answer.peer) == ("dns", None, None)
    assert answer.duration_ms < 100 + MARGIN_MS
