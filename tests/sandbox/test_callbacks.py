import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from banks import get
from core import clock
from sandbox import callbacks, services
from sandbox.models import CallbackState, SandboxCallback
from tests.sandbox.conftest import DOOR
from tests.webhook_receiver import Receiver, Reply

Paying = Callable[..., dict[str, Any]]


@pytest.fixture
def callback(db: None, payment_order: Paying) -> SandboxCallback:
    now = clock.now()
    order = services.plan(**payment_order(scenario="paid", now=now, report_at=now - timedelta(minutes=1)))
    made: SandboxCallback = services.execute(order, now=now).callbacks.get()
    return made


def test_callback_is_signed_as_adapter_expects(callback: SandboxCallback, service_endpoint: Receiver) -> None:
    assert callbacks.run_once() == 1
    (request,) = service_endpoint.to(DOOR)
    headers = {"Sandbox-Bank-Signature": request.headers["sandbox-bank-signature"]}
    get("sandbox").verify(headers=headers, body=request.body, now=clock.now())
    assert request.body.decode() == callback.body
    callback.refresh_from_db()
    assert (callback.state, callback.attempts, callback.last_status) == (CallbackState.DELIVERED, 1, 200)


def test_delivered_callback_is_not_sent_again(callback: SandboxCallback, service_endpoint: Receiver) -> None:
    assert [callbacks.run_once(), callbacks.run_once()] == [1, 0]


@pytest.mark.django_db
def test_callback_before_due_time_is_not_sent(payment_order: Paying, service_endpoint: Receiver) -> None:
    now = clock.now()
    order = services.plan(**payment_order(scenario="paid", now=now, report_at=now + timedelta(minutes=1)))
    services.execute(order, now=now)
    assert callbacks.run_once() == 0


@pytest.mark.parametrize("status", [302, 401, 404, 500, 503])
def test_failed_callback_is_retried_after_a_second(
    callback: SandboxCallback, service_endpoint: Receiver, status: int
) -> None:
    service_endpoint.on(DOOR, Reply(status=status, headers={"Location": "/elsewhere"}))
    before = timezone.now()
    callbacks.run_once()
    assert len(service_endpoint.requests) == 1
    callback.refresh_from_db()
    assert (callback.state, callback.last_status) == (CallbackState.WAITING, status)
    assert before < callback.due_at - timedelta(seconds=1) < timezone.now()


def test_refused_connection_is_retried(callback: SandboxCallback, settings: Any) -> None:
    settings.BASE_URL = "http://127.0.0.1:1"
    callbacks.run_once()
    callback.refresh_from_db()
    assert (callback.state, callback.last_status, callback.last_error) == (
        CallbackState.WAITING,
        None,
        "ConnectionError",
    )


def test_silent_receiver_times_out(
    callback: SandboxCallback, service_endpoint: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(callbacks, "READ_SECONDS", 0.05)
    service_endpoint.on(DOOR, Reply(hangs=True))
    assert callbacks.send(callback).error == "ReadTimeout"


def test_endless_response_body_is_not_read(callback: SandboxCallback, service_endpoint: Receiver) -> None:
    service_endpoint.on(DOOR, Reply(headers={"Content-Length": "1000000"}))
    assert callbacks.send(callback).is_delivered


def test_retry_delays_grow_and_end_after_a_day(callback: SandboxCallback) -> None:
    assert timedelta(hours=23) < sum(callbacks.RETRY_DELAYS, timedelta()) < timedelta(hours=25)
    assert sorted(callbacks.RETRY_DELAYS) == callbacks.RETRY_DELAYS
    SandboxCallback.objects.update(attempts=len(callbacks.RETRY_DELAYS))
    (claimed,) = callbacks.claim(1)
    callbacks.record_result(callbacks.CallbackResult(claimed, 500), now=clock.now())
    callback.refresh_from_db()
    assert callback.state == CallbackState.GIVEN_UP


def test_callback_of_dead_sender_is_due_after_lease(callback: SandboxCallback) -> None:
    (lost,) = callbacks.claim(10)
    assert callbacks.claim(10) == []
    SandboxCallback.objects.update(due_at=clock.now() - timedelta(seconds=1))
    (found,) = callbacks.claim(10)
    assert (found.pk, found.attempts) == (lost.pk, 2)
    callbacks.record_result(callbacks.CallbackResult(lost, 500), now=clock.now())
    callback.refresh_from_db()
    assert callback.last_status is None


@pytest.mark.django_db(transaction=True)
@pytest.mark.slow
def test_concurrent_claims_never_share_a_callback(payment_order: Paying) -> None:
    now = clock.now()
    for _ in range(20):
        services.execute(services.plan(**payment_order(scenario="callback_repeated", now=now)), now=now)
    SandboxCallback.objects.update(due_at=now - timedelta(seconds=1))
    claimed: list[int] = []
    start = threading.Barrier(4)

    def claim_all() -> None:
        start.wait()
        while calls := callbacks.claim(3):
            claimed.extend(call.pk for call in calls)
        connection.close()

    senders = [threading.Thread(target=claim_all) for _ in range(4)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    assert len(claimed) == len(set(claimed)) <= 60
    assert not SandboxCallback.objects.due().exists()
