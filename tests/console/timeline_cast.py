"""Rows around a payment that other ways than the merchant's API write."""

from datetime import datetime
from typing import Any

from core import clock, ids, vault
from receipts.models import Act, InquiryAnswer, Receipt, Statement, StatementLine
from tests.conftest import Shop
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


def decided(receipt: Receipt, deed: str, *, by: str = CLERK, payment_id: str | None = None) -> Act:
    act: Act = Act.objects.create(
        subject_id=receipt.pk, deed=deed, by=by, why=WHY, payment_id=payment_id, at=clock.now()
    )
    return act


def named_in_a_statement(receipt: Receipt) -> StatementLine:
    at = clock.now()
    statement = Statement.objects.create(
        id=ids.new("stm_", at),
        bank="sandbox",
        name="20261121.csv",
        digest="0",
        imported_by=CLERK,
        created_at=at,
        total=1,
    )
    line: StatementLine = StatementLine.objects.create(
        statement=statement,
        number=1,
        bank="sandbox",
        account="4051234567",
        line_sealed=vault.seal("line", context=f"{statement.pk}:1"),
        result="attached",
        receipt=receipt,
    )
    return line


def attempted(payment_id: str, times: int) -> None:
    """So many attempts more of the payment's only delivery, each of which failed."""
    delivery = Delivery.objects.get(event__subject_id=payment_id)
    at: datetime = clock.now()
    Attempt.objects.bulk_create(
        Attempt(delivery=delivery, number=number, started_at=at, duration_ms=5, status=500, error="http_5xx")
        for number in range(times)
    )
