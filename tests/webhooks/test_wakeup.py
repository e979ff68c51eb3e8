"""Wake-ups reach workers soon and never block the caller. A failed wake-up loses no delivery."""

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
from django.contrib.auth.models import User
from django.db import transaction
from redis import Redis

from config.celery import app
from console.exports import jobs
from console.exports.jobs import AlreadyOpen
from core import clock
from core.observing import measurements
from core.work.redis import RedisBreaker
from core.work.redis_urls import Broker
from core.work.wakeup import MIN_INTERVAL_SECONDS, WakeupSender
from tests.conftest import Shop
from tests.stack import wait_until
from tests.webhooks.builders import failed_wakeups, make_endpoint, publish
from tests.webhooks.misbehaving_receivers import unused_port
from webhooks import wakeup
from webhooks.models import Delivery
from webhooks.wakeup import QUEUE, TASK

pytestmark = pytest.mark.slow

PATIENCE_SECONDS = 60.0


@pytest.fixture(autouse=True)
def nothing_measured() -> None:
    """Begin without measurements of other tests."""
    measurements.OF_PROCESS.take()


class SilenceableWakeupSender(WakeupSender):
    """A sender that a test can silence, so that its last wakeup does not reach the next test."""

    def __init__(self, broker_url: str, task: str = TASK, queue: str = QUEUE) -> None:
        super().__init__(task, queue, Broker.of(broker_url))
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
    """A database of the broker that no other test uses or clears."""
    number = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")) + 8
    url: str = urlsplit(settings.REDIS_URL)._replace(path=f"/{number}").geturl()
    return url


@pytest.fixture
def broker(broker_url: str) -> Iterator[Redis]:
    """The broker, where messages wait in a list until a worker takes them."""
    with Redis.from_url(broker_url) as client:
        client.flushdb()
        yield client


@pytest.fixture
def sender(broker_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[WakeupSender]:
    """The sender of this process."""
    sender = SilenceableWakeupSender(broker_url)
    monkeypatch.setattr(wakeup, "_sender", sender)
    yield sender
    sender.silence()


def next_wakeup(broker: Redis, queue: str = QUEUE) -> dict[str, Any]:
    """Take the next message from the broker."""
    found: Any = broker.blpop([queue], timeout=PATIENCE_SECONDS)
    assert found is not None, "no wakeup was received"
    message: dict[str, Any] = json.loads(found[1])
    return message


def is_wakeup_received(broker: Redis) -> bool:
    return bool(next_wakeup(broker)["headers"]["task"] == TASK)


def test_wakeup_sends_the_task_without_arguments(sender: WakeupSender, broker: Redis) -> None:
    sender.wake()
    headers = next_wakeup(broker)["headers"]
    assert (headers["task"], headers["argsrepr"], headers["kwargsrepr"]) == (TASK, "()", "{}")
    assert headers["ignore_result"] is True
    assert headers["expires"] is not None


def test_many_wakeups_are_merged_and_the_last_is_sent(sender: WakeupSender, broker: Redis) -> None:
    began = time.monotonic()
    for _ in range(1000):
        sender.wake()
    assert is_wakeup_received(broker)
    sender.wake()
    assert is_wakeup_received(broker)
    assert broker.llen(QUEUE) <= (time.monotonic() - began) / MIN_INTERVAL_SECONDS


def test_wakeup_waits_after_redis_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.work.wakeup.RedisBreaker", partial(RedisBreaker, pause=3600))
    with unused_port() as port:
        sender = WakeupSender(TASK, QUEUE, Broker.of(f"redis://127.0.0.1:{port}/0"))
        sender.wake()
        wait_until(lambda: failed_wakeups() == 1, PATIENCE_SECONDS)
        for _ in range(10):
            sender.wake()
            time.sleep(2 * MIN_INTERVAL_SECONDS)
        assert failed_wakeups() == 1


def test_dropped_redis_connection_loses_no_wakeup(
    sender: WakeupSender, broker: Redis, broker_url: str
) -> None:
    sender.wake()
    assert is_wakeup_received(broker)
    number = urlsplit(broker_url).path.removeprefix("/")
    others = [client for client in broker.client_list() if client["db"] == number]
    for client in others:
        broker.client_kill_filter(_id=client["id"], skipme=True)
    sender.wake()
    assert is_wakeup_received(broker)


@pytest.mark.usefixtures("sender")
@pytest.mark.django_db(transaction=True)
def test_commit_wakes_workers_and_rollback_does_not(shop: Shop, broker: Redis) -> None:
    make_endpoint(shop)
    with transaction.atomic():
        publish(shop)
        transaction.set_rollback(True)
    time.sleep(5 * MIN_INTERVAL_SECONDS)
    assert broker.llen(QUEUE) == 0
    with transaction.atomic():
        publish(shop)
        assert broker.llen(QUEUE) == 0
    assert is_wakeup_received(broker)


@pytest.mark.django_db(transaction=True)
def test_stored_export_wakes_a_worker(
    broker: Redis, broker_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    sender = SilenceableWakeupSender(broker_url, *jobs.WORK)
    monkeypatch.setattr(jobs, "_workers", sender)
    owner = User.objects.create_superuser("owner")
    jobs.ask(owner, list="payments.payment", query="", file_type="csv", now=clock.now())
    task = next_wakeup(broker, "default")["headers"]["task"]
    assert task in {entry["task"] for entry in app.conf.beat_schedule.values()}
    with pytest.raises(AlreadyOpen):
        jobs.ask(owner, list="payments.payment", query="", file_type="csv", now=clock.now())
    assert broker.llen("default") == 0
    sender.silence()


@pytest.mark.usefixtures("sender")
@pytest.mark.django_db(transaction=True)
def test_event_without_subscriber_wakes_no_worker(shop: Shop, broker: Redis) -> None:
    publish(shop)
    time.sleep(5 * MIN_INTERVAL_SECONDS)
    assert broker.llen(QUEUE) == 0


@pytest.mark.django_db(transaction=True)
def test_publishing_does_not_wait_for_hanging_redis(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("core.work.wakeup.CALL_TIMEOUT_SECONDS", 3600.0)
    make_endpoint(shop)
    with socket.create_server(("127.0.0.1", 0)) as hung:
        sender = WakeupSender(TASK, QUEUE, Broker.of(f"redis://127.0.0.1:{hung.getsockname()[1]}/0"))
        monkeypatch.setattr(wakeup, "_sender", sender)
        publish(shop)
        assert select.select([hung], [], [], PATIENCE_SECONDS)[0], "nobody connected"
        publish(shop, 10)
        assert failed_wakeups() == 0
    wait_until(lambda: failed_wakeups() > 0, PATIENCE_SECONDS)
    assert Delivery.objects.count() == 11
