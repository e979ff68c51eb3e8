"""The sandbox bank's doors for money out, as the service knocks there."""

import hmac
import json
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from django.conf import settings

from core import clock
from sandbox.models import SandboxCallback, SandboxOrder
from tests.concurrency import run_concurrently
from tests.conftest import new_client

pytestmark = pytest.mark.django_db
DOOR = "/sandbox/bank/v1/orders"
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


def sign(method: str, path: str, body: bytes, seconds: int = 0, secret: str = "") -> str:
    at = str(int(clock.now().timestamp()) + seconds)
    signed = f"{at}.{method} {path}.".encode() + body
    return (
        f"t={at},v1={hmac.digest((secret or settings.SANDBOX_BANK_SECRET).encode(), signed, 'sha256').hex()}"
    )


def post(body: bytes, signature: str | None = None, content_type: str = "application/json") -> Any:
    headers = {"Sandbox-Bank-Signature": signature or sign("POST", DOOR, body)}
    return new_client().post(DOOR, body, content_type=content_type, headers=headers)


def order(**changes: Any) -> Any:
    return post(json.dumps(ORDER | changes).encode())


def ask(reference: str = REFERENCE, signature: str | None = None) -> Any:
    path = f"{DOOR}/{reference}"
    return new_client().get(path, headers={"Sandbox-Bank-Signature": signature or sign("GET", path, b"")})


def error_of(response: Any) -> tuple[int, str, str | None]:
    error = response.json()["error"]
    return response.status_code, error["code"], error.get("param")


def test_order_is_processing_then_succeeded() -> None:
    with time_machine.travel(clock.now(), tick=False) as time_travel:
        responses = [order(), ask()]
        time_travel.shift(timedelta(seconds=0.5))
        responses.append(ask())
    assert [response.json()["status"] for response in responses] == ["processing", "processing", "succeeded"]
    kept = SandboxOrder.objects.get()
    assert responses[2].json() == {
        "reference": REFERENCE,
        "bank_reference": kept.id,
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
        shown = ask().json()
    assert (shown["status"], shown["reason"]) == (status, reason)


def test_truncated_response_still_executes_order() -> None:
    with time_machine.travel(clock.now(), tick=False) as time_travel:
        response = order(account="4051230003")
        time_travel.shift(timedelta(seconds=1))
        shown = ask().json()
    assert response.status_code == 200
    with pytest.raises(json.JSONDecodeError):
        json.loads(response.content)
    assert shown["status"] == "succeeded"


def test_returned_order_succeeds_first_and_is_notified() -> None:
    with time_machine.travel(clock.now(), tick=False) as time_travel:
        order(account="4051230004")
        seen = []
        for seconds in (1, 4):
            time_travel.shift(timedelta(seconds=seconds))
            seen.append(ask().json()["status"])
    call = SandboxCallback.objects.get()
    kept = SandboxOrder.objects.get()
    assert seen == ["succeeded", "returned"]
    assert (call.order, call.payment, call.due_at) == (kept, None, kept.returns_at)
    assert json.loads(call.body) == {
        "type": "order",
        "reference": REFERENCE,
        "bank_reference": kept.id,
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
    assert error_of(order(**{name: value})) == (409, "order_reference_reused", None)
    assert SandboxOrder.objects.get().amount == 150_000


@pytest.mark.django_db(transaction=True)
def test_concurrent_orders_with_same_reference_are_one() -> None:
    responses = run_concurrently(*[lambda: order(account="4051230004")] * 8)
    assert len({response.content for response in responses}) == 1
    assert SandboxOrder.objects.count() == SandboxCallback.objects.count() == 1


def test_account_of_order_is_sealed() -> None:
    order()
    kept = SandboxOrder.objects.get()
    assert "4051234567" not in kept.account_sealed
    assert kept.account == "4051234567"


@pytest.mark.parametrize("reference", ["wd_1Kq1vJZ3d8rT5wY7uI9oP2aS4dF", "x" * 65, "%00", "%F0%9F%92%B8"])
def test_unknown_order_is_404(reference: str) -> None:
    assert error_of(ask(reference)) == (404, "order_not_found", None)


BODY = json.dumps(ORDER).encode()
WRONG: dict[str, Callable[[], str]] = {
    "none": lambda: " ",
    "malformed": lambda: "sesame",
    "another body": lambda: sign("POST", DOOR, b"{}"),
    "another method": lambda: sign("PUT", DOOR, BODY),
    "another path": lambda: sign("POST", "/banks/sandbox/notices", BODY),
    "another secret": lambda: sign("POST", DOOR, BODY, secret="guessed"),
    "too old": lambda: sign("POST", DOOR, BODY, seconds=-301),
    "too new": lambda: sign("POST", DOOR, BODY, seconds=301),
}


@pytest.mark.parametrize("why", WRONG)
def test_order_without_valid_signature_is_refused(why: str) -> None:
    with time_machine.travel(clock.now(), tick=False):
        assert error_of(post(BODY, WRONG[why]())) == (401, "invalid_order_signature", None)
    assert not SandboxOrder.objects.exists()


def test_an_inquiry_has_to_be_signed_too() -> None:
    order()
    other = sign("GET", f"{DOOR}/wd_other", b"")
    assert error_of(ask(signature=other)) == (401, "invalid_order_signature", None)


@pytest.mark.parametrize(("path", "known"), [(DOOR, "POST"), (f"{DOOR}/{REFERENCE}", "GET, HEAD")])
@pytest.mark.parametrize("method", ["PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "FOO"])
def test_unknown_method_is_405_without_signature(method: str, path: str, known: str) -> None:
    response = new_client().generic(method, path)
    assert error_of(response) == (405, "method_not_allowed", None)
    assert response["Allow"] == known


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("reference", None),
        ("reference", ""),
        ("reference", "with space"),
        ("reference", "x" * 65),
        ("type", "loan"),
        ("amount", "0.00"),
        ("amount", "1500.0"),
        ("amount", 1500),
        ("amount", "2000000.01"),
        ("amount", "-1.00"),
        ("currency", "USD"),
        ("bank_code", "14"),
        ("account", "12-34567890"),
        ("account", {"no": 1}),
        ("account_name", ""),
        ("account_name", "two\nlines"),
        ("account_name", "ก" * 141),
    ],
)
def test_a_malformed_field_is_named(name: str, value: Any) -> None:
    assert error_of(order(**{name: value})) == (400, "invalid_order", name)
    assert not SandboxOrder.objects.exists()


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b"{", b"\xff", b'{"type": 1, "type": 1}', b"[" * 999])
def test_malformed_body_is_refused_in_error_envelope(body: bytes) -> None:
    assert error_of(post(body))[0] == 400


def test_another_content_type_is_refused() -> None:
    assert error_of(post(BODY, content_type="text/plain")) == (415, "unsupported_media_type", None)


def test_order_api_is_404_without_sandbox_bank(monkeypatch: pytest.MonkeyPatch) -> None:
    signature = sign("POST", DOOR, BODY)
    monkeypatch.setattr(settings, "SANDBOX_BANK_SECRET", "")
    assert error_of(post(BODY, signature)) == (404, "not_found", None)
    assert error_of(ask(signature=signature)) == (404, "not_found", None)
