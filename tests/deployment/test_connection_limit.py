"""The sample file of nginx lets no client fill the queue of web without end."""

import ssl
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from http.client import HTTPSConnection
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.deployment import proxies
from tests.stack import wait_until

pytestmark = pytest.mark.slow

LIMIT = 100
CLIENT, ANOTHER = "127.0.0.1", "127.0.0.2"


class SlowWeb(ThreadingHTTPServer):
    """Answers requests to /slow when it may."""

    request_queue_size = 2 * LIMIT

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), SlowHandler)
        self.arrived, self.may_answer = threading.Semaphore(0), threading.Event()


class SlowHandler(BaseHTTPRequestHandler):
    server: SlowWeb

    def do_GET(self) -> None:
        if self.path == "/slow":
            self.server.arrived.release()
            self.server.may_answer.wait()
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
