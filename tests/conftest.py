"""Fixtures of all tests: two merchants, the sandbox bank and a receiver of webhooks."""

import hashlib
import hmac
import json
import time
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.conf import settings
from django.test import Client

from core import clock, ids, money
from core.clock import BANGKOK
from core.database import rows
from core.thai import thaiqr
from merchants import secret_keys, services
from merchants.models import ApiKey, Merchant
from payments.models import Payment
from tests import webhook_receiver
from tests.audit import differences

pytest_plugins = ["tests.isolation"]


@dataclass
class Shop:
    """A merchant that calls the API with its key.

    codes_made_at: a time in the past, for money that was paid before the test began. Such a code expires as
    if it were made now.
    """

    merchant: Merchant
    secret_key: str
    http: Client
    codes_made_at: datetime | None = None

    def get(self, path: str, **headers: str) -> Any:
        return self.http.get(path, headers=self._headers(headers))

    def delete(self, path: str, **headers: str) -> Any:
        return self.http.delete(path, headers=self._headers(headers))

    def patch(self, path: str, body: Any, **headers: str) -> Any:
        data = body if isinstance(body, bytes | str) else json.dumps(body)
        return self.http.patch(path, data, content_type="application/json", headers=self._headers(headers))

    def post(self, path: str, body: Any = None, *, key: str | None = None, **headers: str) -> Any:
        if key is not None:
            headers["Idempotency-Key"] = key
        data = "" if body is None else body if isinstance(body, bytes | str) else json.dumps(body)
        return self.http.post(path, data, content_type="application/json", headers=self._headers(headers))

    def qr_code(self, **fields: Any) -> dict[str, Any]:
        with time_machine.travel(self.codes_made_at) if self.codes_made_at else nullcontext():
            response = self.post("/Thai/v1/qr-codes", {"amount": 150_000, "currency": "THB"} | fields)
        assert response.status_code == 200, response.content
        made: dict[str, Any] = response.json()
        if self.codes_made_at:
            lasts = timedelta(minutes=fields.get("expiry_minutes", 15))
            Payment.objects.filter(pk=made["payment_id"]).update(expires_at=clock.now() + lasts)
        return made

    def payment(self, payment_id: str) -> dict[str, Any]:
        found: dict[str, Any] = self.get(f"/Thai/v1/payments/{payment_id}").json()
        return found

    def _headers(self, more: dict[str, str]) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.secret_key}"} | more


def new_client() -> Client:
    return Client(raise_request_exception=False)


def open_shop(name: str, mode: str = "test") -> Shop:
    """Store the rows of `services.create_merchant` without their audit records: the service takes 4 ms."""
    now, secret_key, is_test = clock.now(), secret_keys.generate(mode), mode == "test"
    merchant = Merchant(
        id=ids.new("mch_", now),
        name=name,
        mode=mode,
        bank=services.SANDBOX if is_test else "",
        biller_id=ids.random_text(15, "0123456789") if is_test else "",
        created_at=now,
    )
    key = ApiKey(
        id=ids.new("key_", now),
        merchant=merchant,
        public_id=secret_keys.public_id(secret_key),
        digest=secret_keys.digest(secret_key),
        created_at=now,
    )
    rows.insert_together([merchant, key])
    return Shop(merchant, secret_key, new_client())


@pytest.fixture
def shop(db: None) -> Shop:
    return open_shop("Somtam House")


@pytest.fixture
def other_shop(db: None) -> Shop:
    return open_shop("Larb Palace")


@dataclass
class SandboxBankClient:
    """Sends the signed notifications of the sandbox bank."""

    http: Client

    def notify(self, qr_code: dict[str, Any], **changes: Any) -> Any:
        return self.post(self.notification(qr_code, **changes))

    def notification(self, qr_code: dict[str, Any], **changes: Any) -> dict[str, Any]:
        code = thaiqr.parse(qr_code["qr_data"])
        paid_at: datetime = changes.pop("paid_at", clock.now())
        return {
            "transaction_id": ids.random_text(20),
            "type": "credit",
            "biller_id": code.biller_id,
            "reference1": code.reference1,
            "reference2": code.reference2,
            "reference3": code.reference3,
            "amount": money.baht(changes.pop("satang", qr_code["amount"])),
            "currency": "THB",
            "paid_at": paid_at.astimezone(BANGKOK).isoformat(timespec="milliseconds"),
            "payer_name": "Somchai Jaidee",
            "payer_bank_code": "014",
            "payer_account": "1234567890",
        } | changes

    def post(self, notification: dict[str, Any] | bytes, signature: str | None = None) -> Any:
        body = notification if isinstance(notification, bytes) else json.dumps(notification).encode()
        return self.http.post(
            "/banks/sandbox/notifications",
            body,
            content_type="application/json",
            headers={"Sandbox-Bank-Signature": self.sign(body) if signature is None else signature},
        )

    def sign(self, body: bytes) -> str:
        at = str(int(time.time()))
        digest = hmac.new(settings.SANDBOX_BANK_SECRET.encode(), f"{at}.".encode() + body, hashlib.sha256)
        return f"t={at},v1={digest.hexdigest()}"


@pytest.fixture
def bank(db: None) -> SandboxBankClient:
    return SandboxBankClient(new_client())


@pytest.fixture
def endpoint() -> Iterator[webhook_receiver.Receiver]:
    """A server that gets webhooks and answers 200."""
    with webhook_receiver.running_receiver() as listening:
        yield listening


@pytest.fixture
def audit_is_clean(db: None) -> Iterator[None]:
    """Fail the test if the audit finds a difference at its end."""
    yield
    assert not differences()


@pytest.fixture
def noon() -> datetime:
    return datetime(2026, 11, 21, 5, 0, tzinfo=UTC)
