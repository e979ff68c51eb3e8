"""`manage.py sandbox_bank` as a process, with a real database and a real receiver."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from django.db import connection

from core import clock
from sandbox import orders
from sandbox.models import CallbackState, SandboxCallback
from tests.sandbox.conftest import NOTIFICATION_PATH, pay
from tests.stack import ROOT, wait_until
from tests.webhook_receiver import Receiver, Reply

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]


@contextmanager
def sandbox_bank(service: Receiver) -> Iterator["subprocess.Popen[bytes]"]:
    """The process on this test's database, as soon as it has started."""
    test_database = os.environ["DATABASE_URL"].rpartition("/")[0] + "/" + connection.settings_dict["NAME"]
    environ = {**os.environ, "DATABASE_URL": test_database, "BASE_URL": service.base_url}
    # Skip the checks, because the database of the tests is fast and not durable.
    command = [sys.executable, "manage.py", "sandbox_bank", "--skip-checks"]
    process = subprocess.Popen(command, cwd=ROOT, env=environ, stderr=subprocess.PIPE)
    try:
        assert process.stderr is not None
        assert service.base_url.encode() in process.stderr.readline()
        yield process
    finally:
        process.kill()
        process.communicate()


def all_are_delivered() -> bool:
    return not SandboxCallback.objects.exclude(state=CallbackState.DELIVERED).exists()


def test_callback_worker_sends_callbacks_and_stops_on_signal(service_endpoint: Receiver) -> None:
    with sandbox_bank(service_endpoint) as process:
        pay("callback_repeated")
        service_endpoint.wait_for(lambda requests: len(requests) == 3)
        bodies = {request.body for request in service_endpoint.to(NOTIFICATION_PATH)}
        assert len(bodies) == 1
        wait_until(all_are_delivered, 60)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def test_returned_order_sends_callback(service_endpoint: Receiver) -> None:
    order = orders.OrderRequest("wd_1", "payout", 150_000, "014", "4051230004", "MALEE SRISUK")
    with sandbox_bank(service_endpoint):
        orders.accept(order, now=clock.now())
        (request,) = service_endpoint.wait_for(lambda requests: len(requests) == 1)
        assert (request.path, request.json["reference"], request.json["status"]) == (
            NOTIFICATION_PATH,
            "wd_1",
            "returned",
        )
        wait_until(all_are_delivered, 60)


def test_slow_receiver_does_not_delay_other_callbacks(service_endpoint: Receiver) -> None:
    service_endpoint.on(NOTIFICATION_PATH, Reply(hangs=True), Reply())
    with sandbox_bank(service_endpoint):
        pay()
        service_endpoint.wait_for(lambda requests: len(requests) == 1)
        pay()
        # It would take ten seconds to give up the first.
        service_endpoint.wait_for(lambda requests: len(requests) == 2, timeout=9)


def test_callback_worker_reconnects_to_database(service_endpoint: Receiver) -> None:
    with sandbox_bank(service_endpoint):
        pay()
        service_endpoint.wait_for(lambda requests: len(requests) == 1)
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        pay()
        service_endpoint.wait_for(lambda requests: len(requests) == 2)


def test_two_callback_workers_send_each_callback_once(service_endpoint: Receiver) -> None:
    with sandbox_bank(service_endpoint), sandbox_bank(service_endpoint) as second:
        for number in range(20):
            pay(reference1=f"REF{number}")
        wait_until(all_are_delivered, 60)
        assert (
            len({request.body for request in service_endpoint.requests})
            == len(service_endpoint.requests)
            == 20
        )
        second.send_signal(signal.SIGINT)
        assert second.wait(60) == 0
