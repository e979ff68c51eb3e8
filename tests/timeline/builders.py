"""Rows around a payment that other ways than the merchant's API write."""

from datetime import datetime
from typing import Any

from core import clock
from reconciliation.models import BankNotification, BankTransaction, InquiryAnswer, Resolution
from tests.conftest import Shop
from tests.reconciliation.statements.statement_files import bot_file, credit_line, import_file
from webhooks.models import Delivery, DeliveryAttempt

CLERK, WHY = "staff:somsri", "she called and sent her slip"


def timeline_page(shop: Shop, payment_id: str, query: str = "") -> dict[str, Any]:
    response = shop.get(f"/v1/payments/{payment_id}/timeline{query}")
    assert response.status_code == 200, response.content
    found: dict[str, Any] = response.json()
    return found


def entries(shop: Shop, payment_id: str) -> list[dict[str, Any]]:
    """All of them, the oldest first."""
    found = timeline_page(shop, payment_id, "?limit=100")
    assert len(found["timeline"]) == found["total"]
    return list(reversed(found["timeline"]))


def types(shop: Shop, payment_id: str) -> list[str]:
    return [entry["type"] for entry in entries(shop, payment_id)]


def only_entry(shop: Shop, payment_id: str, type: str) -> dict[str, Any]:
    (found,) = [entry for entry in entries(shop, payment_id) if entry["type"] == type]
    return found


def bank_inquiry(payment_id: str, output: str, **fields: Any) -> InquiryAnswer:
    """The bank was asked."""
    response: InquiryAnswer = InquiryAnswer.objects.create(
        payment_id=payment_id, outcome=output, duration_ms=87, **{"answered_at": clock.now()} | fields
    )
    return response


def resolve(
    about: BankTransaction | BankNotification, deed: str, *, by: str = CLERK, payment_id: str | None = None
) -> Resolution:
    action: Resolution = Resolution.objects.create(
        subject_id=about.pk, type=deed, actor=by, note=WHY, payment_id=payment_id, created_at=clock.now()
    )
    return action


def report_by_statement(code: dict[str, Any]) -> None:
    """A file of the bank names the money that paid for the code."""
    paid_at = BankTransaction.objects.get(payment_id=code["payment_id"], match_result="applied").paid_at
    assert import_file(bot_file(credit_line(code, paid_at))).is_clean


def add_attempts(payment_id: str, times: int) -> None:
    """So many attempts more of the payment's only delivery, each of which failed."""
    delivery = Delivery.objects.get(event__subject_id=payment_id)
    at: datetime = clock.now()
    DeliveryAttempt.objects.bulk_create(
        DeliveryAttempt(
            delivery=delivery, number=number, started_at=at, duration_ms=5, status=500, error="http_5xx"
        )
        for number in range(times)
    )
