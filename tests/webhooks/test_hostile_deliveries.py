"""Deliveries to receivers that misbehave end in bounded time, and the attempt records the error."""

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
from tests.webhook_receiver import Receiver, Script
from tests.webhooks.builders import NOW, make_endpoint, publish
from tests.webhooks.certificates import Authority
from tests.webhooks.hostile_urls import resolving, set_default_resolver
from tests.webhooks.misbehaving_receivers import (
    listening,
    replies,
    then_closes,
    then_drips,
    then_floods,
    then_stalls,
)
from tests.webhooks.post_calls import MARGIN_MS, OK
from webhooks import wakeup
from webhooks.delivery import dispatcher
from webhooks.models import Delivery, DeliveryAttempt, Endpoint

pytestmark = [
    pytest.mark.slow,
    pytest.mark.django_db,
    pytest.mark.usefixtures("loopback", "no_wakeups", "trusted_authority"),
]

# Endless responses end after this time. Their beginning must be received before.
SECONDS = 4.0
HOST = "hooks.shop.test"
A_GIGABYTE = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000\r\n\r\n"
BOMB = gzip.compress(bytes(50_000_000), 1)
ZIPPED = b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(BOMB)
ELSEWHERE = b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.3/\r\nContent-Length: 0\r\n\r\n"
GONE = b"HTTP/1.1 410 Gone\r\nContent-Length: 0\r\n\r\n"


@dataclass(frozen=True)
class Misbehavior:
    """The behavior of a receiver, with the expected attempt and state of the delivery."""

    script: Script
    state: str
    error: str
    status: int | None = None
    tls: Callable[[Authority], ssl.SSLContext] | None = None
    is_endless: bool = False


MISBEHAVIORS = {
    "drips its head": Misbehavior(
        then_drips(b"HTTP/1.1 200 OK\r\nX-Slow: "), "pending", "timeout", is_endless=True
    ),
    "stalls in its head": Misbehavior(
        then_stalls(b"HTTP/1.1 200 OK\r\n"), "pending", "timeout", is_endless=True
    ),
    "cuts its head": Misbehavior(then_closes(b"HTTP/1.1 200 OK\r\nX-Half: "), "pending", "protocol"),
    "sends 100,000 headers": Misbehavior(
        replies(b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 100_000 + b"\r\n"), "pending", "protocol"
    ),
    "drips its body": Misbehavior(
        then_drips(b"HTTP/1.1 200 OK\r\n\r\n"), "succeeded", "", 200, is_endless=True
    ),
    "cuts its body": Misbehavior(
        then_closes(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n"), "succeeded", "", 200
    ),
    "sends a gigabyte": Misbehavior(
        then_floods(A_GIGABYTE, bytes(65536)), "succeeded", "", 200, is_endless=True
    ),
    "sends a gzip bomb": Misbehavior(replies(ZIPPED + BOMB), "succeeded", "", 200),
    "floods an error": Misbehavior(
        then_floods(b"HTTP/1.1 500 No\r\n\r\n", b"\0" * 65536), "pending", "http_5xx", 500, is_endless=True
    ),
    "leads elsewhere": Misbehavior(replies(ELSEWHERE), "pending", "http_3xx", 302),
    "is gone": Misbehavior(replies(GONE), "held", "http_4xx", 410),
    "is somebody else": Misbehavior(
        replies(OK), "pending", "tls_cert", tls=lambda authority: authority.server("other.shop.test")
    ),
    "has expired": Misbehavior(
        replies(OK), "pending", "tls_cert", tls=lambda authority: authority.server(HOST, days=-1)
    ),
    "vouches for itself": Misbehavior(
        replies(OK), "pending", "tls_cert", tls=lambda authority: authority.self_signed(HOST)
    ),
}


@pytest.fixture
def no_wakeups(monkeypatch: pytest.MonkeyPatch) -> None:
    """Do not connect to Redis."""
    monkeypatch.setattr(wakeup, "wake", lambda: None)


@pytest.fixture
def trusted_authority(tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trust the certificate authority of these tests, and resolve every name to loopback."""
    set_default_resolver(resolving("127.0.0.1"), monkeypatch, tls=tls)


@contextmanager
def standing_at(
    misbehavior: Misbehavior, shop: Shop, authority: Authority
) -> Iterator[tuple[Receiver, Endpoint]]:
    """A misbehaving receiver and its endpoint."""
    with listening(
        misbehavior.script, tls=misbehavior.tls(authority) if misbehavior.tls else None
    ) as receiver:
        url = receiver.url(host=HOST, scheme="https" if misbehavior.tls else "http")
        yield receiver, make_endpoint(shop, url)


def check(misbehavior: Misbehavior, receiver: Receiver, endpoint: Endpoint) -> None:
    """Compare the attempt with the expected one."""
    attempt = DeliveryAttempt.objects.get(delivery__endpoint=endpoint)
    assert (attempt.status, attempt.error, attempt.peer) == (
        misbehavior.status,
        misbehavior.error,
        "127.0.0.1",
    )
    assert (attempt.duration_ms or 0) < settings.WEBHOOK_TIMEOUT_SECONDS * 1000 + MARGIN_MS
    assert len(attempt.excerpt) <= 4096
    assert Delivery.objects.get(endpoint=endpoint).state == misbehavior.state
    endpoint.refresh_from_db()
    assert endpoint.status == ("disabled" if misbehavior.status == 410 else "active")
    assert len(receiver.heads) == (0 if misbehavior.tls else 1)
    assert receiver.sent < 20_000_000


@pytest.mark.parametrize(
    "name", [name for name, misbehavior in MISBEHAVIORS.items() if not misbehavior.is_endless]
)
def test_attempt_records_error_of_misbehaving_receiver(
    shop: Shop, authority: Authority, dialled: list[str], name: str
) -> None:
    misbehavior = MISBEHAVIORS[name]
    with standing_at(misbehavior, shop, authority) as (receiver, endpoint):
        publish(shop)
        assert peak_memory_of_drain(expected=1) < 5_000_000
    check(misbehavior, receiver, endpoint)
    assert dialled == ["127.0.0.1"]


def test_misbehaving_receivers_do_not_delay_other_receivers(
    shop: Shop, authority: Authority, dialled: list[str], settings: Settings
) -> None:
    settings.WEBHOOK_TIMEOUT_SECONDS = SECONDS
    kinds = [*MISBEHAVIORS.values(), Misbehavior(replies(OK), "succeeded", "", 200)]
    with ExitStack() as open_receivers:
        met = [
            open_receivers.enter_context(standing_at(misbehavior, shop, authority)) for misbehavior in kinds
        ]
        publish(shop)
        assert peak_memory_of_drain(expected=len(kinds)) < 5_000_000
    for misbehavior, (receiver, endpoint) in zip(kinds, met, strict=True):
        check(misbehavior, receiver, endpoint)
    assert dialled == ["127.0.0.1"] * len(kinds)


def peak_memory_of_drain(*, expected: int) -> int:
    """Deliver, and return the peak memory in bytes."""
    tracemalloc.start()
    assert dispatcher.drain(now=lambda: NOW) == expected
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return peak
