import socket
import ssl
from collections.abc import Callable, Iterator
from ipaddress import ip_network

import pytest
import time_machine
from pytest_django import Settings

from core.work import redis
from tests.webhook_receiver import Receiver, running_receiver
from tests.webhooks.builders import NOW
from tests.webhooks.certificates import Authority
from webhooks import probes
from webhooks.delivery import dispatcher
from webhooks.delivery.dispatcher import Dispatcher
from webhooks.http import client, url_check

SECONDS = 60.0


@pytest.fixture(autouse=True)
def long_timeouts(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    """Raise the time-outs: a busy machine must not reach them by itself."""
    settings.WEBHOOK_TIMEOUT_SECONDS = SECONDS
    monkeypatch.setattr(url_check, "LOOKUP_SECONDS", SECONDS)
    monkeypatch.setattr(dispatcher, "CONNECT_SECONDS", SECONDS)
    monkeypatch.setattr(probes, "TIMEOUTS", client.Timeouts(connect=SECONDS, total=SECONDS))


@pytest.fixture(scope="package")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def tls(authority: Authority) -> ssl.SSLContext:
    """A client's TLS settings that trust the authority."""
    return client.tls_context(str(authority.ca_file))


@pytest.fixture
def dialled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record every address that code connects to. Connections outside of loopback are refused."""
    redis.try_call(lambda client: client.ping())  # connected now, and not by the first request
    seen: list[str] = []
    connect = socket.socket.connect

    def recording(sock: socket.socket, address: tuple[str, int]) -> None:
        seen.append(address[0])
        if not address[0].startswith("127."):
            raise ConnectionRefusedError
        connect(sock, address)

    monkeypatch.setattr(socket.socket, "connect", recording)
    return seen


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A merchant's endpoint that answers 200."""
    with running_receiver() as receiver:
        yield receiver


@pytest.fixture
def loopback(settings: Settings) -> None:
    """Test merchants may have their endpoints on this machine."""
    settings.WEBHOOK_ALLOWED_NETWORKS = [ip_network("127.0.0.0/8")]
    settings.WEBHOOK_ALLOW_HTTP = True


@pytest.fixture
def frozen() -> Iterator[None]:
    """Freeze the clock at NOW."""
    with time_machine.travel(NOW, tick=False):
        yield


@pytest.fixture
def new_dispatcher() -> Iterator[Callable[[int], Dispatcher]]:
    """Makes a dispatcher of a number of posts. It does not keep a connection to the test's database."""
    made: list[Dispatcher] = []

    def make(concurrency: int) -> Dispatcher:
        made.append(Dispatcher(concurrency))
        return made[-1]

    yield make
    for each in made:
        each.disconnect()
