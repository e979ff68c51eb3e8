"""The shops of the whole lives: what a shop and its bank send, and how the shop checks a webhook.

Nothing here needs the settings of the instance. The bank signs as the sandbox bank does.
"""

import base64
import hmac
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from typing import Any

from core import ids, money, thaiqr
from core.clock import BANGKOK

CREATE_PATH, PAYMENT_PATH = "/Thai/v1/qr-codes", "/Thai/v1/payments/"
NOTIFICATION_PATH = "/banks/sandbox/notices"
EVENT = "payment.succeeded"
BODY = json.dumps(
    {
        "amount": 150_000,
        "currency": "THB",
        "reference": "order-1042",
        "client_name": "Somchai Jaidee",
        "metadata": {"table": 4},
    }
).encode()
# As Thai banks make it: the day, then a unique text.
SLIP_REFERENCE_LENGTH = 17


class WrongWebhook(ValueError):
    """A webhook that no shop may believe, or that nobody expects."""


@dataclass(frozen=True)
class Request:
    """One HTTP request with JSON."""

    method: str
    path: str
    headers: Mapping[str, str]
    body: bytes = b""

    def to_bytes(self) -> bytes:
        head = [f"{self.method} {self.path} HTTP/1.1", "Host: 127.0.0.1"]
        head += [f"{name}: {value}" for name, value in self.headers.items()]
        if self.body:
            head += ["Content-Type: application/json", f"Content-Length: {len(self.body)}"]
        return "\r\n".join([*head, "\r\n"]).encode() + self.body


@dataclass(frozen=True)
class Shop:
    """A merchant with one webhook, as the driver creates it."""

    merchant_id: str
    secret_key: str
    webhook_secret: str
    endpoint_id: str

    @cached_property
    def key(self) -> bytes:
        """The bytes that sign its webhooks."""
        return base64.b64decode(self.webhook_secret.removeprefix("whsec_"))

    def creation(self) -> Request:
        return Request(
            "POST", CREATE_PATH, {**self._authorization, "Idempotency-Key": ids.random_text(25)}, BODY
        )

    def poll(self, payment_id: str) -> Request:
        return Request("GET", PAYMENT_PATH + payment_id, self._authorization)

    @property
    def _authorization(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.secret_key}"}

    def paid_payment(self, headers: Mapping[str, str], body: bytes) -> str:
        """The payment that a webhook reports as paid. Raises WrongWebhook."""
        message_id, sent_at = headers["webhook-id"], headers["webhook-timestamp"]
        mac = hmac.digest(self.key, f"{message_id}.{sent_at}.".encode() + body, "sha256")
        if not hmac.compare_digest(headers["webhook-signature"], "v1," + base64.b64encode(mac).decode()):
            raise WrongWebhook(f"{message_id} is not signed by the service")
        message = json.loads(body)
        found = message["event"], message["event_id"], message["data"]["status"]
        if found != (EVENT, message_id, "succeeded"):
            raise WrongWebhook(f"{message_id} is {found}")
        return str(message["data"]["payment_id"])


@dataclass(frozen=True)
class Bank:
    """The sandbox bank, whose secret the service knows."""

    secret: bytes

    def notification(self, qr_data: str, now: datetime) -> Request:
        """The signed report that the code was paid now, by a new transaction."""
        body = json.dumps(_credit(qr_data, now), ensure_ascii=False).encode()
        sent_at = str(int(now.timestamp()))
        mac = hmac.digest(self.secret, sent_at.encode() + b"." + body, "sha256").hex()
        return Request("POST", NOTIFICATION_PATH, {"Sandbox-Bank-Signature": f"t={sent_at},v1={mac}"}, body)


def _credit(qr_data: str, now: datetime) -> dict[str, Any]:
    code, paid_at = thaiqr.parse(qr_data), now.astimezone(BANGKOK)
    return {
        "transaction_id": ids.new("sbp_", now),
        "type": "credit",
        "biller_id": code.biller_id,
        "reference1": code.reference1,
        "reference2": code.reference2 or "",
        "reference3": code.reference3 or "",
        "amount": money.baht(code.amount or 0),
        "currency": money.CURRENCY,
        "paid_at": paid_at.isoformat(timespec="milliseconds"),
        "payer_name": "สมชาย ใจดี",
        "payer_bank_code": "014",
        "payer_account": "4051234567",
        "slip_reference": f"{paid_at:%Y%m%d}{ids.random_text(SLIP_REFERENCE_LENGTH)}",
    }
