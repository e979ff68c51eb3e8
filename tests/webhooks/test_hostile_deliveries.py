"""An event on its way to receivers that misbehave: each costs its time, and its attempt tells what it was."""

import gzip
import ssl
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import pytest
from django.conf import settings
from pytest_django import Settings

from tests.conftest import Shop
from tests.webhooks.cast import NOW, make_endpoint, publish
from tests.webhooks.certificates import Authority
from tests.webhooks.corpus import ask_by_default, resolving
from tests.webhooks.posting import MARGIN_MS, OK
from tests.webhooks.receivers import (
    Receiver,
    Script,
    listening,
    replies,
    then_drips,
    then_floods,
    then_hangs_up,
    then_stalls,
)
from webhooks import deliveries, doorbell
from webhooks.models import Attempt, Delivery, Endpoint

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("loopback", "quiet", "trusting")]

# Who never ends is left after this, and has to be heard before.
SECONDS = 4.0
HOST = "hooks.shop.test"
A_GIGABYTE = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n"
BOMB = gzip.compress(bytes(50_000_000))
ZIPPED = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(BOMB)
ELSEWHERE = b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.3/\r\nContent-Length: 0\r\n\r\n"
GONE = b"HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n"


@dataclass(frozen=True)
class Kind:
    """What a receiver does, with TLS if it has any, and what becomes of the delivery."""

    script: Script
    state: str
    error: str
    status: int | None = None
    tls: Callable[[Authority], ssl.SSLContext] | None = None
    is_endless: bool = False


KINDS = {
    "drips its head": Kind(then_drips(b"HTTP/1.1 200 OK\r\nX-Slow: "), "pending", "timeout", is_endless=True),
    "stalls in its head": Kind(then_stalls(b"HTTP/1.1 200 OK\r\n"), "pending", "timeout", is_endless=True),
    "cuts its head": Kind(then_hangs_up(b"HTTP/1.1 200 OK\r\nX-Half: "), "pending", "protocol"),
    "sends 100,000 headers": Kind(
        replies(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 100_000 + b"\r\n"), "pending", "protocol"
    ),
    "drips its body": Kind(then_drips(b"HTTP/1.1 200 OK\r\n\r\n"), "succeeded", "", 200, is_endless=True),
    "cuts its body": Kind(
        then_hangs_up(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"), "succeeded", "", 200
    ),
    "sends a gigabyte": Kind(then_floods(A_GIGABYTE, bytes(65536)), "succeeded", "", 200, is_endless=True),
    "sends a gzip bomb": Kind(replies(ZIPPED + BOMB), "succeeded", "", 200),
    "floods an error": Kind(
        then_floods(b"HTTP/1.1 500 No\r\n\r\n", b"\0" * 65536), "pending", "http_5xx", 500, is_endless=True
    ),
    "leads elsewhere": Kind(replies(ELSEWHERE), "pending", "http_3xx", 302),
    "is gone": Kind(replies(GONE), "held", "http_4xx", 410),
    "is somebody else": Kind(
        replies(OK), "pending", "tls_cert", tls=lambda authority: authority.server("other.shop.test")
    ),
    "has expired": Kind(
        replies(OK), "pending", "tls_cert", tls=lambda authority: authority.server(HOST, days=-1)
    ),
    "vouches for itself": Kind(
        replies(OK), "pending", "tls_cert", tls=lambda authority: authority.self_signed(HOST)
    ),
}


@pytest.fixture
def quiet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody dials Redis."""
    monkeypatch.setattr(doorbell, "ring", lambda: None)


@pytest.fixture
def trusting(tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """The authority of these tests is a public one, and every name leads to this machine."""
    ask_by_default(resolving("127.0.0.1"), monkeypatch, tls=tls)


@contextmanager
def standing_at(kind: Kind, shop: Shop, authority: Authority) -> Iterator[tuple[Receiver, Endpoint]]:
    """A receiver of this kind and the endpoint of the shop that leads to it."""
    with listening(kind.script, tls=kind.tls(authority) if kind.tls else None) as receiver:
        url = receiver.url(HOST, scheme="https" if kind.tls else "http")
        yield receiver, make_endpoint(shop, url)


def check(kind: Kind, receiver: Receiver, endpoint: Endpoint) -> None:
    """The attempt tells what the receiver did."""
    attempt = Attempt.objects.get(delivery__endpoint=endpoint)
    assert (attempt.status, attempt.error, attempt.peer) == (kind.status, kind.error, "127.0.0.1")
    assert (attempt.duration_ms or 0) < settings.WEBHOOK_SECONDS * 1000 + MARGIN_MS
    assert len(attempt.excerpt) <= 4096
    assert Delivery.objects.get(endpoint=endpoint).state == kind.state
    endpoint.refresh_from_db()
    assert endpoint.status == ("disabled" if kind.status == 410 else "active")
    assert len(receiver.heads) == (0 if kind.tls else 1)
    assert receiver.sent < 20_000_000


@pytest.mark.parametrize("name", [name for name, kind in KINDS.items() if not kind.is_endless])
def test_the_attempt_tells_what_the_receiver_did(
    shop: Shop, authority: Authority, dialled: list[str], name: str
) -> None:
    kind = KINDS[name]
    with standing_at(kind, shop, authority) as (receiver, endpoint):
        publish(shop)
        assert peak_of_drain(told=1) < 5_000_000
    check(kind, receiver, endpoint)
    assert dialled == ["127.0.0.1"]


def test_all_of_them_at_once_keep_nobody_from_being_told(
    shop: Shop, authority: Authority, dialled: list[str], settings: Settings
) -> None:
    settings.WEBHOOK_SECONDS = SECONDS
    kinds = [*KINDS.values(), Kind(replies(OK), "succeeded", "", 200)]
    with ExitStack() as open_receivers:
        met = [open_receivers.enter_context(standing_at(kind, shop, authority)) for kind in kinds]
        publish(shop)
        assert peak_of_drain(told=len(kinds)) < 5_000_000
    for kind, (receiver, endpoint) in zip(kinds, met, strict=True):
        check(kind, receiver, endpoint)
    assert dialled == ["127.0.0.1"] * len(kinds)


def peak_of_drain(*, told: int) -> int:
    """The most bytes of memory that it takes to tell so many."""
    tracemalloc.start()
    assert deliveries.drain(now=lambda: NOW) == told
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak
