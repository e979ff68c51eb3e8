"""Reading a timeline, and making rows that the merchant's API does not make."""

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
    """Return all entries, the oldest first."""
    found = timeline_page(shop, payment_id, "?limit=100")
    assert len(found["timeline"]) == found["total"]
    return list(reversed(found["timeline"]))


def types(shop: Shop, payment_id: str) -> list[str]:
    return [entry["type"] for entry in entries(shop, payment_id)]


def only_entry(shop: Shop, payment_id: str, type: str) -> dict[str, Any]:
    (found,) = [entry for entry in entries(shop, payment_id) if entry["type"] == type]
    return found


def last_entries(shop: Shop, payment_id: str, count: int) -> list[tuple[str, str | None, str | None]]:
    """Return type, actor and request id of the last entries."""
    shown = entries(shop, payment_id)[-count:]
    return [(entry["type"], entry["actor"], entry["request_id"]) for entry in shown]


def key_of(shop: Shop) -> str:
    """Return the actor of requests with the shop's key."""
    return f"key:{shop.merchant.keys.get().public_id}"


def bank_inquiry(payment_id: str, outcome: str, **fields: Any) -> None:
    fields = {"answered_at": clock.now()} | fields
    InquiryAnswer.objects.create(payment_id=payment_id, outcome=outcome, duration_ms=87, **fields)


def resolve(
    subject: BankTransaction | BankNotification, type: str, *, by: str = CLERK, payment_id: str | None = None
) -> None:
    Resolution.objects.create(
        subject_id=subject.pk, type=type, actor=by, note=WHY, payment_id=payment_id, created_at=clock.now()
    )


def report_by_statement(code: dict[str, Any]) -> None:
    """Import a statement that reports the money of the QR code's payment."""
    paid_at = BankTransaction.objects.get(payment_id=code["payment_id"], match_result="applied").paid_at
    assert import_file(bot_file(credit_line(code, paid_at))).is_clean


def add_attempts(payment_id: str, times: int) -> None:
    """Add failed attempts of the payment's only delivery."""
    delivery = Delivery.objects.get(event__subject_id=payment_id)
    at: datetime = clock.now()
    DeliveryAttempt.objects.bulk_create(
        DeliveryAttempt(
            delivery=delivery, number=number, started_at=at, duration_ms=5, status=500, error="http_5xx"
        )
        for number in range(times)
    )
