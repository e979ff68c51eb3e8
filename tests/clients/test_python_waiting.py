"""`wait_until_paid` asks less and less often, and returns only a payment that is paid."""

import asyncio
import json
from collections.abc import Callable, Iterator
from typing import Any

import httpx
import pytest
from thaiqr import NotPaidError, ThaiQR, attempts, errors

from tests import webhook_receiver
from tests.clients import openapi
from tests.clients.running import KEY, async_client, blocking_client
from tests.webhook_receiver import Receiver, Reply

Wait = Callable[..., Any]
PATH = "/v1/payments/pay_1"
DOWN = Reply(503, body=b'{"error": {"code": "service_unavailable", "type": "api_error"}}')


def payment(status: str) -> Reply:
    return Reply(body=json.dumps(example(status)).encode())


def example(status: str) -> dict[str, Any]:
    answer = openapi.DOCUMENT["paths"]["/v1/payments/{payment_id}"]["get"]["responses"]["200"]
    return {**answer["content"]["application/json"]["example"], "payment_id": "pay_1", "status": status}


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "FIRST_POLL", 0.001)
    monkeypatch.setattr(attempts, "FIRST_PAUSE", 0.001)


@pytest.fixture
def service() -> Iterator[Receiver]:
    with webhook_receiver.running_receiver() as running:
        yield running


def blocking(service: Receiver, **options: Any) -> Any:
    with blocking_client(service.base_url) as client:
        return client.payments.wait_until_paid("pay_1", **options)


def awaiting(service: Receiver, **options: Any) -> Any:
    async def run() -> Any:
        async with async_client(service.base_url) as client:
            return await client.payments.wait_until_paid("pay_1", **options)

    return asyncio.run(run())


both_clients = pytest.mark.parametrize("wait", [blocking, awaiting])


@both_clients
def test_waiting_ends_when_the_payment_is_paid(service: Receiver, wait: Wait) -> None:
    service.on(PATH, payment("pending"), payment("pending"), payment("succeeded"), payment("refunded"))
    assert wait(service).status == "succeeded"
    assert [each.path for each in service.requests] == [PATH] * 3


@both_clients
@pytest.mark.parametrize("status", ["failed", "expired", "refunded", "of a newer service"])
def test_payment_that_ends_otherwise_is_an_error(service: Receiver, wait: Wait, status: str) -> None:
    service.on(PATH, payment("pending"), payment(status))
    with pytest.raises(NotPaidError, match=f"pay_1 is {status}") as raised:
        wait(service)
    assert raised.value.payment.status == status
    assert len(service.requests) == 2


@both_clients
def test_payment_that_is_pending_at_the_deadline_is_an_error(service: Receiver, wait: Wait) -> None:
    service.on(PATH, payment("pending"))
    with pytest.raises(NotPaidError, match="pay_1 is pending"):
        wait(service, seconds=0)
    assert len(service.requests) == 1
    with pytest.raises(NotPaidError, match="pay_1 is pending"):
        wait(service, seconds=0.05)


@both_clients
def test_each_read_has_all_retries(service: Receiver, wait: Wait) -> None:
    trouble = [DOWN, DOWN, DOWN, payment("pending")]
    service.on(PATH, *trouble, *trouble, payment("succeeded"))
    assert wait(service).status == "succeeded"
    service.on(PATH, payment("pending"), DOWN)
    with pytest.raises(errors.ServerError):
        wait(service)


def test_pauses_grow_to_five_seconds_and_end_at_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    now = 0.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    payments = ThaiQR(KEY, base_url="http://127.0.0.1").payments
    call = type(payments).wait_until_paid.build(payments, "pay_1", seconds=20)
    reads = attempts.Attempts(call, 3, began=now)
    pauses = []
    with pytest.raises(NotPaidError):
        while True:
            pauses.append(reads.after_response(httpx.Response(200, json=example("pending"))) or 0.0)
            now += pauses[-1]
    assert pauses == [1.0, 1.5, 2.25, 3.375, 5.0, 5.0, pytest.approx(1.875)]
