import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.utils import timezone

from banks import get
from core import clock
from sandbox import sending, services
from sandbox.models import SandboxCall, State
from tests.receiver import Receiver, Reply
from tests.sandbox.conftest import DOOR

Paying = Callable[..., dict[str, Any]]


@pytest.fixture
def call(db: None, paying: Paying) -> SandboxCall:
    now = clock.now()
    order = services.order(**paying(scenario="paid", now=now, report_at=now - timedelta(minutes=1)))
    made: SandboxCall = services.carry_out(order, now=now).calls.get()
    return made


def test_a_call_is_delivered_as_the_adapter_expects_it(call: SandboxCall, service: Receiver) -> None:
    assert sending.run_once() == 1
    (request,) = service.to(DOOR)
    headers = {"Sandbox-Bank-Signature": request.headers["sandbox-bank-signature"]}
    get("sandbox").verify(headers=headers, body=request.body, now=clock.now())
    assert request.body.decode() == call.body
    call.refresh_from_db()
    assert (call.state, call.attempts, call.last_status) == (State.DELIVERED, 1, 200)


def test_what_was_delivered_is_not_sent_again(call: SandboxCall, service: Receiver) -> None:
    assert [sending.run_once(), sending.run_once()] == [1, 0]


@pytest.mark.django_db
def test_what_is_not_due_is_not_sent(paying: Paying, service: Receiver) -> None:
    now = clock.now()
    order = services.order(**paying(scenario="paid", now=now, report_at=now + timedelta(minutes=1)))
    services.carry_out(order, now=now)
    assert sending.run_once() == 0


@pytest.mark.parametrize("status", [302, 401, 404, 500, 503])
def test_anything_but_success_is_tried_again_a_second_later(
    call: SandboxCall, service: Receiver, status: int
) -> None:
    service.on(DOOR, Reply(status=status, headers={"Location": "/elsewhere"}))
    before = timezone.now()
    sending.run_once()
    assert len(service.requests) == 1
    call.refresh_from_db()
    assert (call.state, call.last_status) == (State.WAITING, status)
    assert before < call.due_at - timedelta(seconds=1) < timezone.now()


def test_a_door_that_is_closed_is_tried_again(call: SandboxCall, settings: Any) -> None:
    settings.BASE_URL = "http://127.0.0.1:1"
    sending.run_once()
    call.refresh_from_db()
    assert (call.state, call.last_status, call.last_error) == (State.WAITING, None, "ConnectionError")


def test_a_door_that_never_answers_is_left(
    call: SandboxCall, service: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sending, "READ_SECONDS", 0.05)
    service.on(DOOR, Reply(hangs=True))
    assert sending.send(call).error == "ReadTimeout"


def test_a_body_that_never_ends_is_not_waited_for(call: SandboxCall, service: Receiver) -> None:
    service.on(DOOR, Reply(headers={"Content-Length": "1000000"}))
    assert sending.send(call).is_delivered


def test_waits_grow_and_end_after_a_day(call: SandboxCall) -> None:
    assert timedelta(hours=23) < sum(sending.WAITS, timedelta()) < timedelta(hours=25)
    assert sorted(sending.WAITS) == sending.WAITS
    SandboxCall.objects.update(attempts=len(sending.WAITS))
    (claimed,) = sending.claim(1)
    sending.note(sending.Result(claimed, 500), now=clock.now())
    call.refresh_from_db()
    assert call.state == State.GIVEN_UP


def test_a_call_of_a_sender_that_died_comes_due_by_its_lease(call: SandboxCall) -> None:
    (lost,) = sending.claim(10)
    assert sending.claim(10) == []
    SandboxCall.objects.update(due_at=clock.now() - timedelta(seconds=1))
    (found,) = sending.claim(10)
    assert (found.pk, found.attempts) == (lost.pk, 2)
    sending.note(sending.Result(lost, 500), now=clock.now())
    call.refresh_from_db()
    assert call.last_status is None


@pytest.mark.django_db(transaction=True)
def test_two_senders_at_once_never_get_the_same_call(paying: Paying) -> None:
    now = clock.now()
    for _ in range(20):
        services.carry_out(services.order(**paying(scenario="callback_repeated", now=now)), now=now)
    SandboxCall.objects.update(due_at=now - timedelta(seconds=1))
    claimed: list[int] = []
    start = threading.Barrier(4)

    def claim_all() -> None:
        start.wait()
        while calls := sending.claim(3):
            claimed.extend(call.pk for call in calls)
        connection.close()

    senders = [threading.Thread(target=claim_all) for _ in range(4)]
    for sender in senders:
        sender.start()
    for sender in senders:
        sender.join()
    assert len(claimed) == len(set(claimed)) <= 60
    assert not SandboxCall.objects.due().exists()
