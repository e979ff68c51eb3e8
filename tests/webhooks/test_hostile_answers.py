import gzip
import socket
import tracemalloc
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial

import pytest

from tests.webhook_receiver import Receiver, ReceiverConnection, Script
from tests.webhooks.misbehaving_receivers import (
    listening,
    replies,
    then_closes,
    then_drips,
    then_floods,
    then_resets,
    then_stalls,
)
from tests.webhooks.post_calls import (
    LONG_TIMEOUTS,
    LOOPBACK,
    MARGIN_MS,
    MEDIUM_TIMEOUTS,
    OK,
    SHORT_TIMEOUTS,
    post,
    post_bytes,
    post_to,
)
from webhooks.http.client import PostResult

pytestmark = pytest.mark.slow

ENDLESS = b"HTTP/1.1 200 OK\r\n\r\n"


# These never end by themselves.
ENDLESS_HEADS: dict[str, Script] = {
    "drips a header": then_drips(b"HTTP/1.1 200 OK\r\nX-Slow: "),
    "drips headers": then_drips(b"HTTP/1.1 200 OK\r\n", drop=b"X: y\r\n", every=0.2),
    "sends nothing": then_stalls(b""),
    "stalls in a header": then_stalls(b"HTTP/1.1 200 OK\r\nX-Half: "),
    "stalls after the status": then_stalls(b"HTTP/1.1 200 OK\r\n"),
}
ENDLESS_BODIES: dict[str, Script] = {
    "S348": then_stalls(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nx"),
    "drip": then_drips(ENDLESS),
}
BECAUSE = "because"
ENDLESS_ERROR: dict[str, Script] = {BECAUSE: then_drips(b"HTTP/1.1 500 Oops\r\n\r\nbecause", drop=b".")}


@dataclass(frozen=True)
class EndlessResults:
    """The results of concurrent posts to all endless receivers; `peak` memory in bytes."""

    met: dict[str, tuple[PostResult, Receiver]]
    peak: int


@pytest.fixture(scope="module")
def endless() -> EndlessResults:
    scripts = ENDLESS_HEADS | ENDLESS_BODIES | ENDLESS_ERROR
    tracemalloc.start()
    with ThreadPoolExecutor(len(scripts)) as pool:
        met = pool.map(partial(post_to, timeouts=MEDIUM_TIMEOUTS), scripts.values())
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return EndlessResults(dict(zip(scripts, met, strict=True)), peak)


@pytest.mark.parametrize("name", ENDLESS_HEADS)
def test_endless_response_head_ends_at_deadline_without_success(name: str, endless: EndlessResults) -> None:
    answer, receiver = endless.met[name]
    assert (answer.status, answer.error, len(receiver.heads)) == (None, "timeout", 1)
    assert answer.duration_ms < MEDIUM_TIMEOUTS.total * 1000 + MARGIN_MS


@pytest.mark.parametrize(
    ("script", "error"),
    [
        (then_closes(b""), "reset"),
        (then_resets(b""), "reset"),
        (then_resets(b"HTTP/1.1 200 OK\r\nX-Half: "), "reset"),
        (then_closes(b"HTTP/1.1 200"), "protocol"),
        (then_closes(b"HTTP/1.1 200 OK\r\n"), "protocol"),
        (then_closes(b"HTTP/1.1 200 OK\r\nX-Half: "), "protocol"),
        (then_closes(b"HTTP/1.1 200 OK\r\nX-Whole: y\r\n"), "protocol"),
        (then_closes(b"<html>I speak HTTP/0.9</html>"), "protocol"),
        (then_closes(b"SSH-2.0-OpenSSH_9.6\r\n"), "protocol"),
        (replies(b"HTTP/2.0 200 OK\r\n\r\n"), "protocol"),
        (replies(b"HTTP/1.1 abc OK\r\n\r\n"), "protocol"),
        (replies(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 100_000 + b"\r\n"), "protocol"),
        (replies(b"HTTP/1.1 200 OK\r\nX: " + b"y" * 10_000_000 + b"\r\n\r\n"), "protocol"),
        (replies(b"HTTP/1.1 100 Continue\r\n\r\n" * 100_000), "protocol"),
        (then_floods(b"HTTP/1.1 200 OK\r\n", b"X: y\r\n" * 1000), "protocol"),
        (then_floods(b"", b"garbage"), "protocol"),
        (then_drips(b"", drop=b"H"), "protocol"),
        # RFC 9112, 6.3: such a response is to be discarded. S349, S350 and their kin.
        (then_stalls(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nx"), "protocol"),
        (then_stalls(b"HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\nok"), "protocol"),
        (then_stalls(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nx"), "protocol"),
        (then_stalls(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok"), "protocol"),
    ],
)
def test_incomplete_response_head_is_no_success(script: Script, error: str) -> None:
    answer, receiver = post_to(script)
    assert (answer.status, answer.error, len(receiver.heads)) == (None, error, 1)
    assert receiver.sent < 20_000_000


def zipped(times: int) -> bytes:
    bomb = bytes(10_000_000)
    for _ in range(times):
        bomb = gzip.compress(bomb, 1)
    return bomb


def encoded(name: str, body: bytes) -> bytes:
    head = f"HTTP/1.1 200 OK\r\nContent-Encoding: {name}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


# Complete heads: the body cannot change that the post was received.
BODIES: dict[str, Script] = {
    "S339": then_floods(ENDLESS, b"x" * 65536),
    "S345": replies(encoded("gzip", zipped(1))),
    "S346": replies(encoded("br", b"\x1b" * 10_000)),
    "S347": replies(encoded(", ".join(["gzip"] * 10), zipped(10))),
    "S367": replies(OK.replace(b"\r\n", b'\r\nAlt-Svc: h2="127.0.0.1:1"\r\n', 1)),
    "broken chunks": then_floods(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"zz\r\n"),
    "endless chunks": then_floods(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"1\r\nx\r\n"),
    "reset": then_resets(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nx"),
}


@pytest.mark.parametrize("name", BODIES)
def test_response_body_does_not_fill_memory(name: str) -> None:
    with listening(BODIES[name]) as receiver:
        tracemalloc.start()
        answer = post(receiver.url(), timeouts=LONG_TIMEOUTS)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert (answer.status, answer.error, len(receiver.heads)) == (200, "", 1)
    assert len(answer.excerpt) <= 4096
    assert peak < 2_000_000
    assert receiver.sent < 20_000_000


@pytest.mark.parametrize("name", ENDLESS_BODIES)
def test_response_body_ends_at_deadline(name: str, endless: EndlessResults) -> None:
    answer, receiver = endless.met[name]
    assert (answer.status, answer.error, len(receiver.heads)) == (200, "", 1)
    assert answer.duration_ms < MEDIUM_TIMEOUTS.total * 1000 + MARGIN_MS
    assert len(answer.excerpt) <= 4096


def test_endless_response_does_not_fill_memory(endless: EndlessResults) -> None:
    assert endless.peak < 2_000_000


def test_received_part_of_slow_body_is_kept(endless: EndlessResults) -> None:
    answer, _ = endless.met[BECAUSE]
    assert answer.error == "http_5xx"
    assert answer.excerpt.startswith("because.")


def test_post_to_a_receiver_that_never_reads_ends_at_the_deadline() -> None:
    with listening(lambda line: line.wait(), reads=False) as receiver:
        url, big = receiver.url(), bytes(50_000_000)
        answer = post_bytes(url, big, headers={}, policy=LOOPBACK, timeouts=SHORT_TIMEOUTS)
    assert answer.error == "timeout"
    assert answer.duration_ms < SHORT_TIMEOUTS.total * 1000 + MARGIN_MS


def test_response_sent_before_the_request_was_read_counts() -> None:
    def refuses_early(line: ReceiverConnection) -> None:
        line.send(b"HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n")
        line.sock.shutdown(socket.SHUT_RD)
        line.wait()

    with listening(refuses_early, reads=False) as receiver:
        answer = post_bytes(receiver.url(), b"x" * 100, headers={}, policy=LOOPBACK, timeouts=LONG_TIMEOUTS)
    assert answer.status == 413
