"""Requests as the application gets them, the answers of the web server itself, and stalled clients."""

import json
import os
import re
import signal
import socket
import time
from collections import Counter
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path

import pytest

from config.asgi import BODY_SECONDS
from config.connection_guard import UNREAD_SECONDS
from config.devstack.processes import command_of
from core.http.responses import MAX_BODY
from tests.error_messages import check_error
from tests.raw_http import HALF_BODY, HALF_HEADER, HEAD, ask, exchange, opened, reply
from tests.stack import Stack, wait_until
from tests.systems.devstack.conftest import WebServer, serving
from tests.systems.devstack.echo import LARGE

pytestmark = pytest.mark.slow
WEBSOCKET = (
    b"GET / HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
)


def test_request_arrives_in_the_meta_of_django(web: WebServer) -> None:
    shown = ask(
        web.port, b"POST /a%20b?x=%201", b"Content-Type: text/plain\r\nContent-Length: 3\r\n", b"abc"
    ).json
    assert shown["REQUEST_METHOD"] == "POST"
    assert (shown["SCRIPT_NAME"], shown["PATH_INFO"], shown["QUERY_STRING"]) == ("", "/a b", "x=%201")
    assert (shown["SERVER_NAME"], shown["SERVER_PORT"]) == ("127.0.0.1", str(web.port))
    assert shown["REMOTE_ADDR"] == "127.0.0.1"
    assert (shown["CONTENT_TYPE"], shown["CONTENT_LENGTH"], shown["body"]) == ("text/plain", "3", "abc")


@pytest.mark.parametrize(
    ("path", "arrives"),
    [
        (b"/%C3%A9", "/é"),
        (b"/%ff", "/\ufffd"),
        (b"/%00", "/\0"),
        (b"/%zz", "/%zz"),
        (b"/%2F", "//"),
    ],
)
def test_request_path_is_percent_decoded_in_path_info(web: WebServer, path: bytes, arrives: str) -> None:
    assert ask(web.port, b"GET " + path).json["PATH_INFO"] == arrives


@pytest.mark.parametrize("path", ["/é".encode(), b"/a b", b"/\x7f"])
def test_request_path_with_other_characters_is_refused(web: WebServer, path: bytes) -> None:
    assert ask(web.port, b"GET " + path).status == 400


def test_repeated_request_headers_are_joined(web: WebServer) -> None:
    assert ask(web.port, b"GET /", b"X-A: 1\r\nX-A: 2\r\n").json["HTTP_X_A"] == "1,2"


def test_two_idempotency_keys_are_refused(web: WebServer) -> None:
    """Joined by a comma they would be a third key."""
    response = ask(web.port, b"POST /", b"Idempotency-Key: a\r\nIdempotency-Key: b\r\n")
    assert (response.status, response.json["error"]["code"]) == (400, "invalid_idempotency_key")
    assert "more than one" in response.json["error"]["message"]


def test_request_header_with_underscore_is_dropped(web: WebServer) -> None:
    shown = ask(web.port, b"GET /", b"X_Forwarded_Proto: https\r\n").json
    assert "HTTP_X_FORWARDED_PROTO" not in shown


def test_non_ascii_request_header_is_passed_on(web: WebServer) -> None:
    assert (
        not ask(web.port, b"GET /", "Idempotency-Key: clé\r\n".encode())
        .json["HTTP_IDEMPOTENCY_KEY"]
        .isascii()
    )


def test_chunked_request_body_is_read_completely(web: WebServer) -> None:
    shown = ask(
        web.port, b"POST /", b"Transfer-Encoding: chunked\r\n", b"2\r\nab\r\n1\r\nc\r\n0\r\n\r\n"
    ).json
    assert (shown["body"], shown["CONTENT_LENGTH"]) == ("abc", "3")
    assert "HTTP_TRANSFER_ENCODING" not in shown


@pytest.mark.parametrize(("size", "too_large"), [(MAX_BODY, False), (MAX_BODY + 1, True), (5_000_000, True)])
def test_request_body_over_the_limit_is_dropped_and_marked(
    web: WebServer, size: int, too_large: bool
) -> None:
    shown = ask(web.port, b"POST /", f"Content-Length: {size}\r\n".encode(), b"x" * size).json
    assert shown["too_large"] is too_large
    assert len(shown["body"]) == (0 if too_large else size)


def test_chunked_request_body_over_the_limit_is_marked(web: WebServer) -> None:
    chunk = b"11170\r\n" + b"x" * 70_000 + b"\r\n0\r\n\r\n"
    assert ask(web.port, b"POST /", b"Transfer-Encoding: chunked\r\n", chunk).json["too_large"]


@pytest.mark.parametrize(
    "chunks",
    [
        b"zz\r\nab\r\n0\r\n\r\n",
        b"-2\r\nab\r\n0\r\n\r\n",
        pytest.param(b"2;" + 100_000 * b"x" + b"\r\nab\r\n0\r\n\r\n", id="extension of 100 kB"),
    ],
)
def test_malformed_chunked_body_is_refused(web: WebServer, chunks: bytes) -> None:
    assert ask(web.port, b"POST /", b"Transfer-Encoding: chunked\r\n", chunks).status == 400


def test_application_error_is_500_in_error_envelope(web: WebServer) -> None:
    response = ask(web.port, b"GET /boom")
    assert (response.status, response.json["error"]["type"]) == (500, "api_error")
    assert "fault" not in response.body.decode()
    assert response.headers["x-request-id"].startswith("req_")


@pytest.mark.parametrize(
    ("given", "is_kept"), [(b"order-17", True), (b"x" * 64, True), (b"x" * 65, False), (b"a b", False)]
)
@pytest.mark.parametrize(
    ("start", "headers", "status"),
    [
        pytest.param(b"GET /boom", b"", 500, id="a fault"),
        pytest.param(b"GET /", 60 * (b"X-Filler: " + b"x" * 1170 + b"\r\n"), 400, id="a large head"),
    ],
)
def test_response_without_the_application_has_the_request_id_of_the_client(
    web: WebServer, start: bytes, headers: bytes, status: int, given: bytes, is_kept: bool
) -> None:
    response = ask(web.port, start, b"X-Request-Id: " + given + b"\r\n" + headers)
    shown = response.headers["x-request-id"]
    assert (response.status, shown == given.decode(), shown.startswith("req_")) == (
        status,
        is_kept,
        not is_kept,
    )
    if status == 500:
        assert response.json["error"]["request_id"] == shown


def test_responses_to_head_and_204_have_no_body(web: WebServer) -> None:
    assert ask(web.port, b"HEAD /").body == b""
    assert (ask(web.port, b"GET /empty").status, ask(web.port, b"GET /empty").body) == (204, b"")


def test_pipelined_requests_are_answered_in_their_order(web: WebServer) -> None:
    paths = [b"/first", b"/empty", b"/second", b"/third"]
    body = b"Content-Length: 3\r\n\r\nabc"
    requests = [b"POST %b HTTP/1.1\r\nHost: x\r\n%b" % (path, body) for path in paths]
    end = b"GET /end HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    with opened(web.port, b"".join([*requests, end])) as client:
        answered = b"".join(iter(partial(client.recv, 65_536), b"")).decode()
    assert re.findall(r'"PATH_INFO": "(/\w+)"', answered) == ["/first", "/second", "/third", "/end"]
    assert answered.count("HTTP/1.1 2") == 5


def test_responses_that_a_client_does_not_read_do_not_pile_up(web: WebServer, tmp_path: Path) -> None:
    answered, asked = tmp_path / "answered", 500
    answered.touch()
    request = f"GET /large?{answered} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
    with opened(
        web.port, request * asked + b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    ) as client:
        wait_until(lambda: _stands_still(web, answered), 60)
        assert 0 < answered.stat().st_size < asked / 2
        received = sum(map(len, iter(partial(client.recv, 1_000_000), b"")))
    assert received > asked * LARGE
    assert answered.stat().st_size == asked


def _stands_still(web: WebServer, file: Path) -> bool:
    """Whether the file has bytes, and gets no more while the server answers others."""
    before = file.stat().st_size
    for _ in range(100):
        ask(web.port, b"GET /")
    return 0 < before == file.stat().st_size


def test_client_that_reads_nothing_of_a_response_is_cut_off(web: WebServer, tmp_path: Path) -> None:
    answered, asked = tmp_path / "answered", 500
    answered.touch()
    request = f"GET /large?{answered} HTTP/1.1\r\nHost: x\r\n\r\n".encode()
    with opened(web.port, request * asked) as client:
        wait_until(lambda: answered.stat().st_size > 0, 60)
        began = time.monotonic()
        wait_until(lambda: not _is_established(web.port, client), UNREAD_SECONDS + 60)
        assert time.monotonic() - began > UNREAD_SECONDS / 2  # one that reads slowly is not cut off
        client.settimeout(60)
        with suppress(ConnectionError):  # the server has dropped the rest
            received = 0
            while part := client.recv(1_000_000):
                received += len(part)
        assert received < asked * LARGE
    assert ask(web.port, b"GET /").status == 200


def _is_established(port: int, client: socket.socket) -> bool:
    """Whether the server has the connection open. It cannot tell a client that reads nothing."""
    ends = f"0100007F:{port:04X} 0100007F:{client.getsockname()[1]:04X} 01"
    return ends in Path("/proc/net/tcp").read_text()


FIRST = b"GET /empty" + HEAD + b"\r\n"


@pytest.mark.parametrize(
    ("sent", "statuses"),
    [
        pytest.param(b"", [], id="nothing"),
        pytest.param(b"\r\n", [], id="a blank line"),
        pytest.param(b"\r\n\r\n", [400], id="two blank lines"),
        pytest.param(HALF_HEADER, [], id="half a head"),
        pytest.param(HALF_BODY, [408], id="half a body"),
        pytest.param(FIRST + HALF_HEADER, [204], id="half a second head"),
        pytest.param(FIRST + HALF_BODY, [204, 408], id="half a second body"),
        pytest.param(FIRST + b"\r\n\r\n", [204, 400], id="two blank lines in place of a second head"),
    ],
)
def test_incomplete_request_ends_the_connection_after_ten_seconds(
    web: WebServer, sent: bytes, statuses: list[int]
) -> None:
    with opened(web.port, sent) as connection:
        received = b"".join(iter(partial(connection.recv, 65_536), b""))
    assert re.findall(rb"HTTP/1.1 (\d+)", received) == [b"%d" % each for each in statuses]
    if 408 in statuses:
        check_error(json.loads(received.rpartition(b"\r\n\r\n")[2]), "request_timeout")


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        pytest.param(60 * (b"X-Filler: " + b"x" * 1000 + b"\r\n"), 200, id="60 kB"),
        pytest.param(60 * (b"X-Filler: " + b"x" * 1170 + b"\r\n"), 400, id="70 kB"),
        pytest.param(b"X-Filler: " + b"x" * 70_000 + b"\r\n", 431, id="a header of 70 kB"),
        pytest.param(64 * b"X-A: 1\r\n", 431, id="65 headers"),
    ],
)
def test_head_of_a_request_has_limits(web: WebServer, headers: bytes, status: int) -> None:
    assert exchange(web.port, b"GET /" + HEAD + headers + b"\r\n")[0].status == status


@pytest.mark.parametrize(
    ("head", "status"),
    [
        (b"GET / HTTP/1.1\r\nHost: x\r\nHost: x\r\n", 400),
        (b"GET / HTTP/1.1\r\n", 400),
        (b"GET / HTTP/1.0\r\n", 200),
        (b"GET http://x/ HTTP/1.1\r\nHost: x\r\n", 200),
        (b"GET http://[x/ HTTP/1.1\r\nHost: x\r\n", 200),
        (b"POST / HTTP/1.0\r\nHost: x\r\nTransfer-Encoding: chunked\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: gzip, chunked\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n", 400),
        (b"POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n", 400),
        (b"GET /\r\n", 400),
        (b"GET / HTTP/0.9\r\n", 400),
        (b"GET /" + 9000 * b"x" + b" HTTP/1.1\r\nHost: x\r\n", 414),
        (b"GET / HTTP/1.1\r\nHost: x\r\nX-A: 1\r\n folded\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost : x\r\n", 400),
        (b"GET / HTTP/1.1\nHost: x\r\n", 400),
        (WEBSOCKET, 403),
    ],
)
def test_framing_that_another_server_could_read_otherwise_is_refused(
    web: WebServer, head: bytes, status: int
) -> None:
    assert [each.status for each in exchange(web.port, head + b"\r\n0\r\n\r\n")][:1] == [status]


def test_broken_second_request_of_a_pipeline_leaves_the_answer_to_the_first(web: WebServer) -> None:
    sent = b"GET /first" + HEAD + b"\r\nGARBAGE\0\r\n\r\n"
    assert [each.status for each in exchange(web.port, sent)] == [200, 400]


def test_workers_share_connections() -> None:
    with serving() as web, ExitStack() as stack:
        # Both workers run once each of them has answered.
        wait_until(partial(_adds_second, set(), web.port), 60)
        connections = [stack.enter_context(opened(web.port, b"")) for _ in range(40)]
        workers = Counter(map(_worker_of, connections))
        # A worker that the system delays for a millisecond gets its share later.
        assert min(workers.values()) > 10


def _adds_second(seen: set[int | None], port: int) -> bool:
    seen.add(_answering(port))
    return len(seen - {None}) == 2


def _worker_of(connection: socket.socket) -> int:
    """The id of the process that has a connection, which stays open."""
    connection.sendall(b"GET /" + HEAD + b"\r\n")
    with connection.makefile("rb") as stream:
        lines = iter(stream.readline, b"\r\n")
        headers = dict(line.lower().split(b": ", 1) for line in lines if b": " in line)
        pid: int = json.loads(stream.read(int(headers[b"content-length"])))["pid"]
    return pid


def test_repeatedly_killed_web_workers_are_replaced() -> None:
    """It has a server of its own, which has no worker for a moment after each kill."""
    seen: set[int] = set()
    with serving() as web:
        for _ in range(4):
            wait_until(lambda: _answering(web.port) not in {None, *seen}, 60)
            seen.add(gone := ask(web.port, b"GET /").json["pid"])
            os.kill(gone, signal.SIGKILL)
            wait_until(partial(_is_gone, gone), 60)
        assert web.process.poll() is None


def _is_gone(pid: int) -> bool:
    return command_of(pid) is None


def _answering(port: int) -> int | None:
    """The id of the process that answers, or None."""
    try:
        pid: int = ask(port, b"GET /").json["pid"]
    except OSError:
        return None
    return pid


def test_server_stop_finishes_the_request_in_progress(tmp_path: Path) -> None:
    begun = tmp_path / "begun"
    with serving() as web, opened(web.port, b"GET /" + HEAD + b"\r\n"):
        busy = opened(web.port, f"GET /slow?{begun}".encode() + HEAD + b"\r\n")
        wait_until(begun.exists, 60)
        web.process.terminate()
        assert reply(busy).status == 200
        assert web.process.wait(60) == 0


def test_request_header_values_arrive_byte_for_byte(web: WebServer) -> None:
    thai = "คำสั่งซื้อ-17"
    shown = ask(web.port, b"GET /", f"Idempotency-Key: {thai}\r\n".encode()).json
    assert shown["HTTP_IDEMPOTENCY_KEY"].encode("latin-1").decode() == thai


STALLED = 200


@pytest.mark.parametrize("half", [HALF_BODY, HALF_HEADER], ids=["half a body", "half a header"])
def test_stalled_clients_do_not_delay_other_requests(stack: Stack, half: bytes) -> None:
    stalled = [opened(stack.port, half) for _ in range(STALLED)]
    started = time.monotonic()
    statuses = [ask(stack.port, b"GET /healthz").status for _ in range(20)]
    elapsed = time.monotonic() - started
    for connection in stalled:
        connection.close()
    assert statuses == [200] * 20
    assert elapsed < BODY_SECONDS
