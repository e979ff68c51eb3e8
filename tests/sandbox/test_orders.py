"""Orders of refunds and withdrawals at the sandbox bank."""

import json
from datetime import timedelta
from typing import Any

import pytest
import time_machine

from core import clock
from sandbox.models import SandboxCallback, SandboxOrder
from tests.concurrency import run_concurrently
from tests.conftest import new_client
from tests.error_messages import check_error
from tests.sandbox.conftest import error_of, send_signed

pytestmark = pytest.mark.django_db
PATH = "/sandbox/bank/v1/orders"
REFERENCE = "wd_0Kq1vJZ3d8rT5wY7uI9oP2aS4dF"
ORDER = {
    "reference": REFERENCE,
    "type": "payout",
    "amount": "1500.00",
    "currency": "THB",
    "bank_code": "014",
    "account": "4051234567",
    "account_name": "สมชาย ใจดี",
}


def post(body: bytes, content_type: str = "application/json") -> Any:
    return send_signed("POST", PATH, body, content_type=content_type)


def order(**changes: Any) -> Any:
    return post(json.dumps(ORDER | changes).encode())


def inquire(reference: str = REFERENCE) -> Any:
    return send_signed("GET", f"{PATH}/{reference}")


def test_order_is_processing_then_succeeded() -> None:
    with time_machine.travel(clock.now(), tick=False) as time_travel:
        responses = [order(), inquire()]
        time_travel.shift(timedelta(seconds=0.5))
        responses.append(inquire())
    assert [response.json()["status"] for response in responses] == ["processing", "processing", "succeeded"]
    stored = SandboxOrder.objects.get()
    assert responses[2].json() == {
        "reference": REFERENCE,
        "bank_reference": stored.id,
        "amount": "1500.00",
        "currency": "THB",
        "status": "succeeded",
        "reason": "",
    }
    assert not SandboxCallback.objects.exists()


@pytest.mark.parametrize(
    ("kind", "digits", "status", "reason"),
    [
        ("refund", "0001", "failed", "account_closed"),
        ("refund", "0002", "succeeded", ""),
        ("payout", "0001", "succeeded", ""),
        ("payout", "0002", "failed", "account_not_found"),
        ("refund", "0004", "succeeded", ""),
    ],
)
def test_account_ending_selects_order_scenario(kind: str, digits: str, status: str, reason: str) -> None:
    with time_machine.travel(clock.now(), tick=False) as time_travel:
        order(type=kind, account=f"405123{digits}")
        time_travel.shift(timedelta(minutes=1))
        answer = inquire().json()
    assert (answer["status"], answer["reason"]) == (status, reason)


def test_truncated_response_still_executes_order() -> None:
    with time_machine.travel(clock.now(), tick=False) as time_travel:
        response = order(account="4051230003")
        time_travel.shift(timedelta(seconds=1))
        answer = inquire().json()
    assert response.status_code == 200
    with pytest.raises(json.JSONDecodeError):
        json.loads(response.content)
    assert answer["status"] == "succeeded"


def test_returned_order_succeeds_first_and_is_notified() -> None:
    with time_machine.travel(clock.now(), tick=False) as time_travel:
        order(account="4051230004")
        seen = []
        for seconds in (1, 4):
            time_travel.shift(timedelta(seconds=seconds))
            seen.append(inquire().json()["status"])
    call = SandboxCallback.objects.get()
    stored = SandboxOrder.objects.get()
    assert seen == ["succeeded", "returned"]
    assert (call.order, call.payment, call.due_at) == (stored, None, stored.returns_at)
    assert json.loads(call.body) == {
        "type": "order",
        "reference": REFERENCE,
        "bank_reference": stored.id,
        "amount": "1500.00",
        "currency": "THB",
        "status": "returned",
        "reason": "account_closed",
    }


def test_repeated_order_is_idempotent() -> None:
    first, second = order(account="4051230004"), order(account="4051230004")
    assert first.json() == second.json()
    assert SandboxOrder.objects.count() == SandboxCallback.objects.count() == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("type", "refund"),
        ("amount", "1500.01"),
        ("bank_code", "004"),
        ("account", "4051234568"),
        ("account_name", "SOMEBODY ELSE"),
    ],
)
def test_order_reference_reused_is_refused(name: str, value: str) -> None:
    order()
    refused = order(**{name: value})
    assert error_of(refused) == (409, "order_reference_reused", None)
    check_error(refused.json(), "order_reference_reused")
    assert SandboxOrder.objects.get().amount == 150_000


@pytest.mark.django_db(transaction=True)
@pytest.mark.slow
def test_concurrent_orders_with_the_same_reference_are_one_order() -> None:
    responses = run_concurrently(*[lambda: order(account="4051230004")] * 8)
    assert len({response.content for response in responses}) == 1
    assert SandboxOrder.objects.count() == SandboxCallback.objects.count() == 1


def test_account_of_order_is_sealed() -> None:
    order()
    stored = SandboxOrder.objects.get()
    assert "4051234567" not in stored.account_sealed
    assert stored.account == "4051234567"


@pytest.mark.parametrize("reference", ["wd_1Kq1vJZ3d8rT5wY7uI9oP2aS4dF", "x" * 65, "%00", "%F0%9F%92%B8"])
def test_unknown_order_is_404(reference: str) -> None:
    answer = inquire(reference)
    assert error_of(answer) == (404, "order_not_found", None)
    check_error(answer.json(), "order_not_found")


@pytest.mark.parametrize(("path", "allowed"), [(PATH, "POST"), (f"{PATH}/{REFERENCE}", "GET, HEAD")])
@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "FOO"])
def test_unknown_order_method_is_405_without_signature(method: str, path: str, allowed: str) -> None:
    response = new_client().generic(method, path)
    assert error_of(response) == (405, "method_not_allowed", None)
    assert response["Allow"] == allowed


MALFORMED_FIELDS: dict[str, list[Any]] = {
    "reference": [None, "", "with space", "x" * 65],
    "type": ["loan"],
    "amount": ["0.00", "1500.0", 1500, "2000000.01", "-1.00"],
    "currency": ["USD"],
    "bank_code": ["14"],
    "account": ["12-34567890", {"no": 1}],
    "account_name": ["", "two\nlines", "ก" * 141],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in MALFORMED_FIELDS.items() for value in values]
)
def test_malformed_order_field_is_named(name: str, value: Any) -> None:
    refused = order(**{name: value})
    assert error_of(refused) == (400, "invalid_order", name)
    check_error(refused.json(), "invalid_order", param=name)
    assert not SandboxOrder.objects.exists()


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b"{", b"\xff", b'{"type": 1, "type": 1}', b"[" * 999])
def test_malformed_order_body_is_refused_in_the_error_envelope(body: bytes) -> None:
    assert error_of(post(body))[0] == 400


def test_order_with_another_content_type_is_refused() -> None:
    response = post(json.dumps(ORDER).encode(), content_type="text/plain")
    assert error_of(response) == (415, "unsupported_media_type", None)
