"""Requests for card payments, and what they store."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any

import pytest
from django.db.models.functions import Now

from core import clock
from payments import card_inquiries
from payments.models import CardCharge
from tests.conftest import Shop
from webhooks.models import Event

PATH = "/v1/payments"


def request(token: str = "tok_test_visa", **changes: Any) -> dict[str, Any]:
    return {"token_id": token, "amount": 150_000, "currency": "THB"} | changes


def error_of(answer: Any) -> tuple[int, str, str]:
    error = answer.json()["error"]
    return answer.status_code, error["code"], error["type"]


def events() -> list[str]:
    return list(Event.objects.order_by("created_at", "id").values_list("type", flat=True))


def rows_of(shop: Shop) -> list[tuple[str, str, int]]:
    """The history: type, status, amount."""
    listed = shop.get("/v1/transactions").json()["transactions"]
    return [(row["type"], row["status"], row["amount"]) for row in listed]


def inquire(now: Callable[[], datetime] = clock.now) -> int:
    """Make the inquiries about all open charges."""
    CardCharge.objects.filter(completed_at__isnull=True).update(due_at=Now())
    return card_inquiries.inquire_due(now=now)


@contextmanager
def short_call_timeout() -> Iterator[None]:
    """Calls of the token `tok_test_timeout` time out after 2 s."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("banks.sandbox_cards.READ_SECONDS", 2.0)
        patch.setattr("sandbox.acquirer_server.SILENCE_SECONDS", 60.0)
        yield
