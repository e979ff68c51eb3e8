"""Builders for the sandbox bank: codes, payments and signed requests."""

import hmac
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from django.conf import settings as configured
from pytest_django import Settings

from banks.sandbox_cards import SandboxAcquirer
from config.devstack import ports
from core import clock
from core.thai import thaiqr
from sandbox import services
from sandbox.acquirer_server import run_acquirer_server
from sandbox.models import SandboxPayment
from tests.conftest import new_client
from tests.webhook_receiver import Receiver

NOTIFICATION_PATH = "/banks/sandbox/notifications"
BILLER, REFERENCE = "010555000000001", "ABCDEFGHJ01234567890"


@pytest.fixture
def service_endpoint(settings: Any) -> Iterator[Receiver]:
    """The notification endpoint of the service, with a table of replies."""
    with Receiver.running() as receiver:
        settings.BASE_URL = receiver.base_url
        yield receiver


@pytest.fixture
def url(settings: Settings) -> Iterator[str]:
    settings.SANDBOX_ACQUIRER_URL = f"http://127.0.0.1:{ports.pick()}"
    with run_acquirer_server():
        yield settings.SANDBOX_ACQUIRER_URL


@pytest.fixture
def acquirer(url: str) -> SandboxAcquirer:
    return SandboxAcquirer(configured.SANDBOX_BANK_SECRET, url)


def payload(**changes: Any) -> str:
    fields = {"biller_id": BILLER, "reference1": REFERENCE, "reference2": "SHOP7", "reference3": "T1"}
    return thaiqr.bill_payment(**fields | {"amount": 150_000} | changes)


def pay(
    scenario: str = "paid",
    *,
    now: datetime | None = None,
    paid_at: datetime | None = None,
    report_at: datetime | None = None,
    **code: Any,
) -> SandboxPayment:
    """Pay a code at the sandbox bank. Returns the first payment."""
    now = now or clock.now()
    times: dict[str, Any] = {"now": now, "paid_at": paid_at, "report_at": report_at}
    return services.execute(services.plan(qr_data=payload(**code), scenario=scenario, **times), now=now)


def sign(method: str, path: str, body: bytes = b"", *, seconds: int = 0, secret: str = "") -> str:
    """The service's signature of a request, `seconds` from now."""
    sent_at = str(int(clock.now().timestamp()) + seconds)
    message = f"{sent_at}.{method} {path}.".encode() + body
    key = (secret or configured.SANDBOX_BANK_SECRET).encode()
    return f"t={sent_at},v1={hmac.digest(key, message, 'sha256').hex()}"


def send_signed(
    method: str, path: str, body: bytes = b"", *, signature: str = "", content_type: str = "application/json"
) -> Any:
    headers = {"Sandbox-Bank-Signature": signature or sign(method, path, body)}
    return new_client().generic(method, path, body, content_type=content_type, headers=headers)


def error_of(response: Any) -> tuple[int, str, str | None]:
    error = response.json()["error"]
    return response.status_code, error["code"], error.get("param")
