"""What Opn Payments (Omise) answers: its documented objects, cut to what an adapter can meet."""

from typing import Any

CHARGE_ID = "chrg_test_5x8glktwl62j63dr3me"
CARD = {
    "object": "card",
    "id": "card_test_5x17kjqylbrla8t3elw",
    "livemode": False,
    "country": "us",
    "financing": "credit",
    "bank": "JPMORGAN CHASE BANK N.A.",
    "brand": "Visa",
    "first_digits": None,
    "last_digits": "4242",
    "name": "JOHN DOE",
    "expiration_month": 2,
    "expiration_year": 2034,
    "security_code_check": True,
}


def charge(order_id: str = "pay_1", **changes: Any) -> dict[str, Any]:
    return {
        "object": "charge",
        "id": CHARGE_ID,
        "location": f"/charges/{CHARGE_ID}",
        "amount": 150_000,
        "currency": "THB",
        "description": order_id,
        "metadata": {"order_id": order_id},
        "card": CARD,
        "source": None,
        "failure_code": None,
        "failure_message": None,
        "status": "successful",
        "authorize_uri": None,
        "created_at": "2026-11-21T03:04:05Z",
        "paid_at": "2026-11-21T03:04:06Z",
        "authorized": True,
        "capture": True,
        "paid": True,
    } | changes


def failed(failure_code: str) -> dict[str, Any]:
    return charge(status="failed", failure_code=failure_code, paid=False, paid_at=None)


def refund(order_id: str = "ref_1", **changes: Any) -> dict[str, Any]:
    return {
        "object": "refund",
        "id": "rfnd_test_5x8gm1vq9o2nq5k7m3b",
        "charge": CHARGE_ID,
        "amount": 50_000,
        "currency": "THB",
        "metadata": {"order_id": order_id},
        "status": "closed",
        "voided": False,
        "created_at": "2026-11-22T03:04:05Z",
    } | changes


def error(code: str, message: str = "") -> dict[str, Any]:
    return {
        "object": "error",
        "location": f"https://www.omise.co/api-errors#{code.replace('_', '-')}",
        "code": code,
        "message": message or code.replace("_", " "),
    }


def listing(*data: dict[str, Any], total: int | None = None) -> dict[str, Any]:
    return {
        "object": "list",
        "data": list(data),
        "limit": 100,
        "offset": 0,
        "total": len(data) if total is None else total,
        "order": "chronological",
    }
