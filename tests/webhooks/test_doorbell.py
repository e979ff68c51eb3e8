"""The bell wakes workers soon, costs whoever rings nothing, and is missed by nobody when it breaks."""

import json
import os
import select
import socket
import threading
import time
from collections.abc import Iterator
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from django.db import transaction
from redis import Redis

from core.redis import Breaker
from tests.conftest import Shop
from tests.stack import wait_until
from tests.webhooks.cast import make_endpoint, publish
from tests.webhooks.receivers import unused_port
from webhooks import doorbell
from webhooks.doorbell import QUEUE, TASK, Bell
from webhooks.models import Delivery

PATIENCE_SECONDS = 60.0


class PassingBell(Bell):
    """A bell that a test can silence, or its last ring might sound in the next one."""

    def __init__(self, broker_url: str) -> None:
        super().__init__(broker_url)
        self._sending, self._is_silent = threading.Lock(), False

    def silence(self) -> None:
        with self._sending:
            self._is_silent = True

    def _send(self) -> None:
        with self._sending:
            if not self._is_silent:
                super()._send()


@pytest.fixture
def broker_url() -> str:
    """A database of its own in the broker, apart from those that the workers of the test run clear."""
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) + 8
    url: str = urlsplit(settings.REDIS_URL)._replace(path=f"/{number}").geturl()
    return url


@pytest.fixture
def bells(broker_url: str) -> Iterator[Redis]:
    """The broker, where bells wait in a list until a worker takes them."""
    with Redis.from_url(broker_url) as client:
        client.flushdb()
        yield client


@pytest.fixture
def bell(broker_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bell]:
    """The bell that everybody rings."""
    bell = PassingBell(broker_url)
    monkeypatch.setattr(doorbell, "_bell", bell)
    yield bell
    bell.silence()


def next_bell(bells: Redis) -> dict[str, Any]:
    """The message of the next bell, which is taken away."""
    found: Any = bells.blpop([QUEUE], timeout=PATIENCE_SECONDS)
    assert found is not None, "no bell was heard"
    message: dict[str, Any] = json.loads(found[1])
    return message


def heard(bells: Redis) -> bool:
    return bool(next_bell(bells)["headers"]["task"] == TASK)


def test_a_ring_sends_the_task_and_nothing_with_it(bell: Bell, bells: Redis) -> None:
    bell.ring()
    headers = next_bell(bells)["headers"]
    assert (headers["task"], headers["argsrepr"], headers["kwargsrepr"]) == (TASK, "()", "{}")
    assert headers["ignore_result"] is True
    assert headers["expires"] is not None


def test_many_rings_become_few_bells_and_the_last_is_heard(bell: Bell, bells: Redis) -> None:
    began = time.monotonic()
    for _ in range(1000):
        bell.ring()
    assert heard(bells)
    bell.ring()
    assert heard(bells)
    assert bells.llen(QUEUE) <= (time.monotonic() - began) / doorbell.GAP_SECONDS


@pytest.mark.slow
def test_after_a_failure_redis_is_left_alone_for_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doorbell, "Breaker", partial(Breaker, pause=3600))
    with unused_port() as port:
        bell = Bell(f"redis://127.0.0.1:{port}/0")
        bell.ring()
        wait_until(lambda: bell.failures == 1, PATIENCE_SECONDS)
        for _ in range(10):
            bell.ring()
            time.sleep(2 * doorbell.GAP_SECONDS)
        assert bell.failures == 1


def test_a_connection_that_was_dropped_loses_no_bell(bell: Bell, bells: Redis, broker_url: str) -> None:
    bell.ring()
    assert heard(bells)
    number = urlsplit(broker_url).path.removeprefix("/")
    others = [client for client in bells.client_list() if client["db"] == number]
    for client in others:
        bells.client_kill_filter(_id=client["id"], skipme=True)
    bell.ring()
    assert heard(bells)


@pytest.mark.usefixtures("bell")
@pytest.mark.django_db(transaction=True)
def test_a_commit_rings_and_a_rollback_does_not(shop: Shop, bells: Redis) -> None:
    make_endpoint(shop)
    with transaction.atomic():
        publish(shop)
        transaction.set_rollback(True)
    time.sleep(5 * doorbell.GAP_SECONDS)
    assert bells.llen(QUEUE) == 0
    with transaction.atomic():
        publish(shop)
        assert bells.llen(QUEUE) == 0
    assert heard(bells)


@pytest.mark.usefixtures("bell")
@pytest.mark.django_db(transaction=True)
def test_a_commit_that_nobody_listens_to_rings_nothing(shop: Shop, bells: Redis) -> None:
    publish(shop)
    time.sleep(5 * doorbell.GAP_SECONDS)
    assert bells.llen(QUEUE) == 0


@pytest.mark.django_db(transaction=True)
def test_while_redis_hangs_nobody_who_publishes_waits_for_it(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doorbell, "PATIENCE", 3600.0)
    make_endpoint(shop)
    with socket.create_server(("127.0.0.1", 0)) as hung:
        bell = Bell(f"redis://127.0.0.1:{hung.getsockname()[1]}/0")
        monkeypatch.setattr(doorbell, "_bell", bell)
        publish(shop)
        assert select.select([hung], [], [], PATIENCE_SECONDS)[0], "nobody connected"
        publish(shop, 10)
        assert bell.failures == 0
    wait_until(lambda: bell.failures > 0, PATIENCE_SECONDS)
    assert Delivery.objects.count() == 11
