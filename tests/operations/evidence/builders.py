"""A shop whose payments were sealed by a daily close."""

import base64
import json
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import time_machine

from core import clock
from operations.audit.daily_close import closing
from operations.models import DailyClose
from tests.conftest import SandboxBankClient, Shop

KEY = base64.urlsafe_b64encode(b"k" * 32).decode()


def pay(shop: Shop, bank: SandboxBankClient, at: datetime, **fields: Any) -> str:
    with time_machine.travel(at, tick=False):
        code = shop.qr_code(**{"reference": "order-7", "client_name": "Malee Srisuk"} | fields)
        assert bank.notify(code).status_code == 200
    return str(code["payment_id"])


def close_day(at: datetime) -> DailyClose:
    """The close of the day of this instant."""
    return closing.close(at.astimezone(clock.BANGKOK).date(), now=at + timedelta(days=1))


def read(shop: Shop, payment_id: str, **query: str) -> Any:
    return shop.http.get(
        f"/v1/payments/{payment_id}/evidence",
        query,
        headers={"Authorization": f"Bearer {shop.secret_key}"},
    )


def file_of(shop: Shop, payment_id: str) -> bytes:
    answer = read(shop, payment_id)
    assert answer.status_code == 200, answer.content
    return bytes(answer.content)


def changed(file: bytes, change: Callable[[Any], Any]) -> str:
    """The file with another content, as a forger would write it."""
    given = json.loads(file)
    change(given)
    return json.dumps(given, separators=(",", ":"), ensure_ascii=False)
