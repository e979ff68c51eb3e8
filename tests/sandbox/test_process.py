"""The process itself, over a real database and a real door."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.db import connection

from core import clock
from sandbox import orders, services
from sandbox.models import SandboxCall, State
from tests.receiver import Receiver, Reply
from tests.sandbox.conftest import DOOR, payload
from tests.stack import ROOT, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.django_db(transaction=True)]


@contextmanager
def sandbox_bank(service: Receiver) -> Iterator["subprocess.Popen[bytes]"]:
    """`manage.py sandbox_bank` on this test's database and door, as soon as it is at work."""
    test_database = os.environ["DATABASE_URL"].rpartition("/")[0] + "/" + connection.settings_dict["NAME"]
    environ = {**os.environ, "DATABASE_URL": test_database, "BASE_URL": service.base_url}
    # The checks ask for a database that keeps what it is told; that of the tests is quick instead.
    command = [sys.executable, "manage.py", "sandbox_bank", "--skip-checks"]
    process = subprocess.Popen(command, cwd=ROOT, env=environ, stderr=subprocess.PIPE)
    try:
        assert process.stderr is not None
        assert service.base_url.encode() in process.stderr.readline()
        yield process
    finally:
        process.kill()
        process.communicate()


def pay(scenario: str = "paid", **code: Any) -> None:
    now = clock.now()
    services.carry_out(services.order(qr_data=payload(**code), scenario=scenario, now=now), now=now)


def all_are_delivered() -> bool:
    return not SandboxCall.objects.exclude(state=State.DELIVERED).exists()


def test_what_is_paid_is_told_and_a_signal_ends_the_process(service: Receiver) -> None:
    with sandbox_bank(service) as process:
        pay("callback_repeated")
        service.wait_for(lambda requests: len(requests) == 3)
        bodies = {request.body for request in service.to(DOOR)}
        assert len(bodies) == 1
        wait_until(all_are_delivered, 60)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def test_money_that_comes_back_is_told_of(service: Receiver) -> None:
    asked = orders.Asked("wd_1", "payout", 150_000, "014", "4051230004", "MALEE SRISUK")
    with sandbox_bank(service):
        orders.take(asked, now=clock.now())
        (told,) = service.wait_for(lambda requests: len(requests) == 1)
        assert (told.path, told.json["reference"], told.json["status"]) == (DOOR, "wd_1", "returned")
        wait_until(all_are_delivered, 60)


def test_a_slow_answer_delays_nobody_else(service: Receiver) -> None:
    service.on(DOOR, Reply(hangs=True), Reply())
    with sandbox_bank(service):
        pay()
        service.wait_for(lambda requests: len(requests) == 1)
        pay()
        # It would take ten seconds to give up the first.
        service.wait_for(lambda requests: len(requests) == 2, timeout=9)


def test_lost_database_connections_are_made_anew(service: Receiver) -> None:
    with sandbox_bank(service):
        pay()
        service.wait_for(lambda requests: len(requests) == 1)
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE datname = current_database() AND pid <> pg_backend_pid()"
            )
        pay()
        service.wait_for(lambda requests: len(requests) == 2)


def test_two_processes_tell_each_thing_once(service: Receiver) -> None:
    with sandbox_bank(service), sandbox_bank(service) as second:
        for number in range(20):
            pay(reference1=f"REF{number}")
        wait_until(all_are_delivered, 60)
        assert len({request.body for request in service.requests}) == len(service.requests) == 20
        second.send_signal(signal.SIGINT)
        assert second.wait(60) == 0
