"""Rows around a payment that other ways than the merchant's API write."""

from datetime import datetime
from typing import Any

from core import clock
from receipts.models import Act, InquiryAnswer, Notice, Receipt
from tests.conftest import Shop
from tests.receipts.statements.cast import bot, line_of, load
from webhooks.models import Attempt, Delivery

CLERK, WHY = "somsri", "she called and sent her slip"


def page(shop: Shop, payment_id: str, query: str = "") -> dict[str, Any]:
    answer = shop.get(f"/v1/payments/{payment_id}/timeline{query}")
    assert answer.status_code == 200, answer.content
    found: dict[str, Any] = answer.json()
    return found


def entries(shop: Shop, payment_id: str) -> list[dict[str, Any]]:
    """All of them, the oldest first."""
    found = page(shop, payment_id, "?limit=100")
    assert len(found["timeline"]) == found["total"]
    return list(reversed(found["timeline"]))


def types(shop: Shop, payment_id: str) -> list[str]:
    return [entry["type"] for entry in entries(shop, payment_id)]


def only(shop: Shop, payment_id: str, type: str) -> dict[str, Any]:
    (found,) = [entry for entry in entries(shop, payment_id) if entry["type"] == type]
    return found


def asked(payment_id: str, said: str, **fields: Any) -> InquiryAnswer:
    """The bank was asked."""
    answer: InquiryAnswer = InquiryAnswer.objects.create(
        payment_id=payment_id, said=said, took_ms=87, **{"at": clock.now()} | fields
    )
    return answer


def decided(about: Receipt | Notice, deed: str, *, by: str = CLERK, payment_id: str | None = None) -> Act:
    act: Act = Act.objects.create(
        subject_id=about.pk, deed=deed, by=by, why=WHY, payment_id=payment_id, at=clock.now()
    )
    return act


def named_in_a_statement(code: dict[str, Any]) -> None:
    """A file of the bank names the money that paid for the code."""
    paid_at = Receipt.objects.get(payment_id=code["payment_id"], outcome="applied").paid_at
    assert load(bot(line_of(code, paid_at))).is_clean


def attempted(payment_id: str, times: int) -> None:
    """So many attempts more of the payment's only delivery, each of which failed."""
    delivery = Delivery.objects.get(event__subject_id=payment_id)
    at: datetime = clock.now()
    Attempt.objects.bulk_create(
        Attempt(delivery=delivery, number=number, started_at=at, duration_ms=5, status=500, error="http_5xx")
        for number in range(times)
    )
