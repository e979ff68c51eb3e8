"""Callbacks of the sandbox bank, and `manage.py sandbox_bank` as a process that sends them."""

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from banks import get
from core import clock
from sandbox import callbacks, orders
from sandbox.models import CallbackState, SandboxCallback
from tests.commands import warm
from tests.concurrency import run_concurrently
from tests.sandbox.conftest import NOTIFICATION_PATH, pay
from tests.stack import ROOT, wait_until
from tests.webhook_receiver import Receiver, Reply


@pytest.fixture
def callback(db: None) -> SandboxCallback:
    payment = pay(report_at=clock.now() - timedelta(minutes=1))
    callback: SandboxCallback = payment.callbacks.get()
    return callback


def test_callback_is_signed_as_adapter_expects(callback: SandboxCallback, service_endpoint: Receiver) -> None:
    assert callbacks.run_once() == 1
    (request,) = service_endpoint.to(NOTIFICATION_PATH)
    headers = {"Sandbox-Bank-Signature": request.headers["sandbox-bank-signature"]}
    get("sandbox").verify(headers=headers, body=request.body, now=clock.now())
    assert request.body.decode() == callback.body
    callback.refresh_from_db()
    assert (callback.state, callback.attempts, callback.last_status) == (CallbackState.DELIVERED, 1, 200)


def test_delivered_callback_is_not_sent_again(callback: SandboxCallback, service_endpoint: Receiver) -> None:
    assert [callbacks.run_once(), callbacks.run_once()] == [1, 0]


@pytest.mark.django_db
def test_callback_before_due_time_is_not_sent(service_endpoint: Receiver) -> None:
    pay(report_at=clock.now() + timedelta(minutes=1))
    assert callbacks.run_once() == 0


@pytest.mark.parametrize("status", [302, 401, 404, 500, 503])
def test_failed_callback_is_retried_after_a_second(
    callback: SandboxCallback, service_endpoint: Receiver, status: int
) -> None:
    service_endpoint.on(NOTIFICATION_PATH, Reply(status=status, headers={"Location": "/elsewhere"}))
    before = timezone.now()
    callbacks.run_once()
    assert len(service_endpoint.requests) == 1
    callback.refresh_from_db()
    assert (callback.state, callback.last_status) == (CallbackState.WAITING, status)
    assert before < callback.due_at - timedelta(seconds=1) < timezone.now()


def test_callback_with_refused_connection_is_retried(callback: SandboxCallback, settings: Any) -> None:
    settings.BASE_URL = "http://127.0.0.1:1"
    callbacks.run_once()
    callback.refresh_from_db()
    assert (callback.state, callback.last_status) == (CallbackState.WAITING, None)
    assert callback.last_error == "ConnectionError"


@pytest.mark.slow
def test_callback_to_a_silent_receiver_times_out(
    callback: SandboxCallback, service_endpoint: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(callbacks, "READ_SECONDS", 0.05)
    service_endpoint.on(NOTIFICATION_PATH, Reply(hangs=True))
    assert callbacks.send(callback).error == "ReadTimeout"


def test_endless_response_to_a_callback_is_not_read(
    callback: SandboxCallback, service_endpoint: Receiver
) -> None:
    service_endpoint.on(NOTIFICATION_PATH, Reply(headers={"Content-Length": "1000000"}))
    assert callbacks.send(callback).is_delivered


def test_callback_retry_delays_grow_and_end_after_a_day(callback: SandboxCallback) -> None:
    assert timedelta(hours=23) < sum(callbacks.RETRY_DELAYS, timedelta()) < timedelta(hours=25)
    assert sorted(callbacks.RETRY_DELAYS) == callbacks.RETRY_DELAYS
    SandboxCallback.objects.update(attempts=len(callbacks.RETRY_DELAYS))
    (claimed,) = callbacks.claim(1)
    callbacks.record_result(callbacks.CallbackResult(claimed, 500), now=clock.now())
    callback.refresh_from_db()
    assert callback.state == CallbackState.GIVEN_UP


def test_callback_of_dead_sender_is_due_after_lease(callback: SandboxCallback) -> None:
    (first,) = callbacks.claim(10)
    assert callbacks.claim(10) == []
    SandboxCallback.objects.update(due_at=clock.now() - timedelta(seconds=1))
    (found,) = callbacks.claim(10)
    assert (found.pk, found.attempts) == (first.pk, 2)
    callbacks.record_result(callbacks.CallbackResult(first, 500), now=clock.now())
    callback.refresh_from_db()
    assert callback.last_status is None


@pytest.mark.django_db(transaction=True)
@pytest.mark.slow
def test_concurrent_claims_never_share_a_callback() -> None:
    for _ in range(20):
        pay("callback_repeated")
    SandboxCallback.objects.update(due_at=clock.now() - timedelta(seconds=1))
    claimed: list[int] = []

    def claim_all() -> None:
        while batch := callbacks.claim(3):
            claimed.extend(callback.pk for callback in batch)

    run_concurrently(*[claim_all] * 4)
    assert len(claimed) == len(set(claimed)) <= 60
    assert not SandboxCallback.objects.due().exists()


@contextmanager
def sandbox_bank(service: Receiver) -> Iterator["subprocess.Popen[bytes]"]:
    """The process on this test's database, as soon as it has started."""
    test_database = os.environ["DATABASE_URL"].rpartition("/")[0] + "/" + connection.settings_dict["NAME"]
    environ = {**os.environ, "DATABASE_URL": test_database, "BASE_URL": service.base_url}
    # Skip the checks, because the database of the tests is fast and not durable.
    command = [*warm(), "manage.py", "sandbox_bank", "--skip-checks"]
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


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_callback_worker_sends_callbacks_and_stops_on_signal(service_endpoint: Receiver) -> None:
    with sandbox_bank(service_endpoint) as process:
        pay("callback_repeated")
        service_endpoint.wait_for(lambda requests: len(requests) == 3)
        bodies = {request.body for request in service_endpoint.to(NOTIFICATION_PATH)}
        assert len(bodies) == 1
        wait_until(all_are_delivered, 60)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_returned_order_sends_callback(service_endpoint: Receiver) -> None:
    order = {
        "reference": "wd_1",
        "type": "payout",
        "amount": "1500.00",
        "currency": "THB",
        "bank_code": "014",
        "account": "4051230004",
        "account_name": "MALEE SRISUK",
    }
    with sandbox_bank(service_endpoint):
        orders.accept(orders.parse(order, now=clock.now()))
        (request,) = service_endpoint.wait_for(lambda requests: len(requests) == 1)
        assert request.path == NOTIFICATION_PATH
        assert (request.json["reference"], request.json["status"]) == ("wd_1", "returned")
        wait_until(all_are_delivered, 60)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_slow_receiver_does_not_delay_other_callbacks(service_endpoint: Receiver) -> None:
    service_endpoint.on(NOTIFICATION_PATH, Reply(hangs=True), Reply())
    with sandbox_bank(service_endpoint):
        pay()
        service_endpoint.wait_for(lambda requests: len(requests) == 1)
        pay()
        # It would take ten seconds to give up the first.
        service_endpoint.wait_for(lambda requests: len(requests) == 2, timeout=9)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
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


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
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
