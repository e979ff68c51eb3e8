"""What the sample files of nginx and Caddy hold back from web, as the table of the guide says."""

import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from http.client import HTTPSConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.stack import wait_until
from tests.systems.deployment import proxies

pytestmark = pytest.mark.slow

LIMIT = 100
Proxy = Callable[[Path, int], AbstractContextManager[str]]
CLIENT, ANOTHER = "127.0.0.1", "127.0.0.2"


class SlowWeb(ThreadingHTTPServer):
    """Answers requests to /slow when it may."""

    request_queue_size = 2 * LIMIT

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), SlowHandler)
        self.arrived, self.may_answer = threading.Semaphore(0), threading.Event()
        self.connections = 0

    def verify_request(self, *_: object) -> bool:
        self.connections += 1
        return True


class SlowHandler(BaseHTTPRequestHandler):
    server: SlowWeb

    def do_GET(self) -> None:
        if self.path == "/slow":
            self.server.arrived.release()
            self.server.may_answer.wait()
        self.send_response(200)
        self.end_headers()

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@pytest.fixture
def web() -> Iterator[SlowWeb]:
    with SlowWeb() as server:
        threading.Thread(target=server.serve_forever).start()
        try:
            yield server
        finally:
            server.may_answer.set()
            server.shutdown()


@pytest.mark.parametrize("other_proxy", ["", "127.0.0.3"])
def test_nginx_refuses_a_client_with_too_many_requests_at_once_and_serves_another(
    web: SlowWeb, tmp_path: Path, other_proxy: str
) -> None:
    with ExitStack() as stack:
        nginx = proxies.nginx(tmp_path, web.server_address[1], behind=other_proxy)
        port = urlsplit(stack.enter_context(nginx)).port
        trusted = ssl.create_default_context(cafile=tmp_path / "fullchain.pem")

        def send(path: str, address: str) -> HTTPSConnection:
            made = HTTPSConnection(
                proxies.SITE, port, timeout=60, context=trusted, source_address=(other_proxy or address, 0)
            )
            stack.callback(made.close)
            made.request("GET", path, headers={"X-Forwarded-For": address})
            return made

        def status(path: str, address: str) -> int:
            return send(path, address).getresponse().status

        waiting = [send("/slow", CLIENT) for _ in range(LIMIT)]
        assert all(web.arrived.acquire(timeout=60) for _ in waiting)
        assert (status("/", CLIENT), status("/", ANOTHER)) == (429, 200)
        web.may_answer.set()
        assert {each.getresponse().status for each in waiting} == {200}
        wait_until(lambda: status("/", CLIENT) == 200, 60)


HALF_HEAD = b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Half: "
HALF_BODY = b"POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 10\r\n\r\n12345"


@pytest.mark.parametrize(
    ("proxy", "half", "rest", "is_held_back"),
    [
        (proxies.nginx, HALF_HEAD, b"x\r\nConnection: close\r\n\r\n", True),
        (proxies.nginx, HALF_BODY, b"67890", True),
        (proxies.caddy, HALF_HEAD, b"x\r\nConnection: close\r\n\r\n", True),
        (proxies.caddy, HALF_BODY, b"67890", False),  # web itself ends it after ten seconds
    ],
)
def test_proxy_holds_back_half_a_request(
    web: SlowWeb, tmp_path: Path, proxy: Proxy, half: bytes, rest: bytes, is_held_back: bool
) -> None:
    with proxy(tmp_path, web.server_address[1]) as url, connected(url, tmp_path) as client:
        before = web.connections
        client.sendall(half)
        if not is_held_back:
            wait_until(lambda: web.connections > before, 60)
        with connected(url, tmp_path) as other:  # answered while the first one waits
            other.sendall(b"GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            assert other.recv(12) == b"HTTP/1.1 200"
        assert web.connections == before + (1 if is_held_back else 2)
        client.sendall(rest)
        assert client.recv(12) == b"HTTP/1.1 200"


@contextmanager
def connected(url: str, folder: Path) -> Iterator[ssl.SSLSocket]:
    trusted = ssl.create_default_context(cafile=folder / "fullchain.pem")
    address = (CLIENT, urlsplit(url).port)
    with (
        socket.create_connection(address, timeout=60) as plain,
        trusted.wrap_socket(plain, server_hostname=proxies.SITE) as wrapped,
    ):
        yield wrapped


def test_caddy_does_not_count_the_requests_of_a_client(web: SlowWeb, tmp_path: Path) -> None:
    """So the guide says to limit them elsewhere."""
    request = b"GET /slow HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    with proxies.caddy(tmp_path, web.server_address[1]) as url, ExitStack() as stack:
        clients = [stack.enter_context(connected(url, tmp_path)) for _ in range(LIMIT + 20)]
        for client in clients:
            client.sendall(request)
        assert all(web.arrived.acquire(timeout=60) for _ in clients)
        web.may_answer.set()
        assert {client.recv(12) for client in clients} == {b"HTTP/1.1 200"}
