"""Web restarts under load behind the sample proxies, and no request fails."""

import json
import socket
import subprocess
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
import requests

from tests.stack import STOP_SECONDS, wait_until
from tests.systems.deployment import proxies
from tests.systems.deployment.installation import Installation

pytestmark = pytest.mark.slow

CLIENTS = 4
RESTARTS = 2
REQUESTS_BETWEEN = 40
PAUSE_SECONDS = 0.05
Proxy = Callable[[Path, int], AbstractContextManager[str]]


class Web:
    """Web with a socket that somebody else holds, as systemd does."""

    def __init__(self, installed: Installation, listener: socket.socket) -> None:
        self.installed, self.listener = installed, listener
        self.start()

    def start(self) -> None:
        # The third file is the socket, and LISTEN_PID is the process itself: sd_listen_fds(3).
        script = 'exec 3<&"$LISTENER"; LISTEN_PID=$$ exec "$0" web'
        number = self.listener.fileno()
        with self.installed.log.open("ab") as log:
            self.process = subprocess.Popen(
                ["bash", "-c", script, str(self.installed.program)],
                cwd=self.installed.home,
                env=self.installed.settings | {"LISTEN_FDS": "1", "LISTENER": str(number), "RATE_LIMIT": "0"},
                pass_fds=[number],
                stdout=log,
                stderr=subprocess.STDOUT,
            )

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(STOP_SECONDS)

    def restart(self) -> None:
        assert self.stop() == 0
        self.start()


@contextmanager
def serving(installed: Installation) -> Iterator[Web]:
    with socket.create_server(("127.0.0.1", installed.port), backlog=2048) as listener:
        web = Web(installed, listener)
        try:
            installed.wait_for("/healthz")
            yield web
        finally:
            web.stop()


class Load:
    """Clients that create codes and read their payments, over new and kept connections."""

    def __init__(self, url: str, key: str, certificate: Path) -> None:
        self.url, self.headers, self.certificate = url, {"Authorization": f"Bearer {key}"}, certificate
        self.results: Counter[object] = Counter()
        self._is_over = threading.Event()
        self._threads = [threading.Thread(target=self._run, args=(number,)) for number in range(CLIENTS)]

    def __enter__(self) -> "Load":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    def wait_for_more(self, count: int) -> None:
        goal = self.results.total() + count
        wait_until(lambda: self.results.total() >= goal, 180)

    def _run(self, number: int) -> None:
        session = requests.Session()
        while not self._is_over.wait(PAUSE_SECONDS):
            code = self._send(session, "POST", "/v1/qr-codes", json={"amount": 10_000, "currency": "THB"})
            self._send(session, "GET", f"/v1/payments/{code.get('payment_id')}")
            if number % 2:
                session.close()  # the next request opens another connection to the proxy

    def _send(
        self, session: requests.Session, method: str, path: str, **options: object
    ) -> dict[str, object]:
        options |= {"headers": self.headers, "verify": str(self.certificate), "timeout": 90}
        try:
            response = session.request(method, self.url + path, **options)  # type: ignore[arg-type]
        except requests.RequestException as error:
            self.results[f"{method}: {type(error).__name__}"] += 1
            return {}
        self.results[response.status_code] += 1
        body: dict[str, object] = response.json() if response.status_code == 200 else {}
        return body


@pytest.fixture(scope="module")
def key(installed: Installation) -> str:
    created = installed.run("manage", "create_merchant", "--name", "Larb", "--mode", "test", "--json")
    found: str = json.loads(created.stdout)["secret_key"]
    return found


@pytest.mark.parametrize("proxy", [proxies.nginx, proxies.caddy])
def test_no_request_fails_while_web_restarts_behind_a_proxy(
    installed: Installation, key: str, tmp_path: Path, proxy: Proxy
) -> None:
    with (
        serving(installed) as web,
        proxy(tmp_path, installed.port) as url,
        Load(url, key, tmp_path / "fullchain.pem") as load,
    ):
        load.wait_for_more(REQUESTS_BETWEEN)
        for _ in range(RESTARTS):
            web.restart()
            load.wait_for_more(REQUESTS_BETWEEN)
    assert load.results.keys() == {200}, load.results


@pytest.mark.parametrize("proxy", [proxies.nginx, proxies.caddy])
def test_console_and_metrics_are_closed_to_strangers_and_web_sees_their_address(
    installed: Installation, key: str, tmp_path: Path, proxy: Proxy
) -> None:
    with serving(installed), proxy(tmp_path, installed.port) as url:

        def status(path: str) -> int:
            forged = {"X-Forwarded-For": "203.0.113.9", "Authorization": f"Bearer {key}"}
            answer = requests.get(
                url + path, headers=forged, verify=str(tmp_path / "fullchain.pem"), timeout=60
            )
            return answer.status_code

        closed = ("/admin", "/admin/", "/admin/login/", "/metrics", "/readyz")
        assert {path: status(path) for path in closed} == dict.fromkeys(closed, 403)
        assert status("/v1/balance") == 200
        assert status("/docs") == 200
        with requests.Session() as prometheus:
            prometheus.mount(url, proxies.FromPrometheus())
            metrics = prometheus.get(f"{url}/metrics", verify=str(tmp_path / "fullchain.pem"), timeout=60)
            assert "thaiqr_database_up 1" in metrics.text
    lines = [json.loads(line) for line in installed.log.read_text().splitlines() if '"access"' in line]
    assert [line["address"] for line in lines[-2:]] == ["127.0.0.1", proxies.PROMETHEUS]
