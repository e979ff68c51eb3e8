"""The JSON of a payment: its API object and the data of its events."""

from datetime import datetime
from typing import Any

from core.clock import iso, iso_or_none
from payments.models import Payment, PaymentStatus


def payment_object(payment: Payment, now: datetime) -> dict[str, Any]:
    """Both objects of the interface in one: `card` is null for QR codes, `qr_code_id` for cards."""
    return {
        "payment_id": payment.id,
        "qr_code_id": payment.qr_code_id,
        "status": payment.status_at(now),
        "amount": payment.amount,
        "currency": payment.currency,
        "reference": payment.reference,
        "description": payment.description,
        "created_at": iso(payment.created_at),
        "updated_at": iso(_updated_at(payment, now)),
        "completed_at": iso_or_none(payment.completed_at),
        "card": _card(payment),
        "metadata": payment.metadata,
        "amount_received": payment.amount_received,
        "amount_refunded": payment.amount_refunded,
        "failure_code": payment.failure_code,
        "expires_at": iso_or_none(payment.expires_at),
        "authorize_uri": payment.authorize_uri if payment.status == PaymentStatus.PENDING else None,
        "exceptions": _exceptions(payment),
    }


def event_data(payment: Payment) -> dict[str, Any]:
    """`data` of the payment events. `amount_received` is there only if it differs from the amount."""
    received = payment.amount_received
    return {
        "payment_id": payment.id,
        "status": payment.status,
        "amount": payment.amount,
        "currency": payment.currency,
        "qr_code_id": payment.qr_code_id,
        "reference": payment.reference,
        "metadata": payment.metadata,
        "failure_code": payment.failure_code,
        **({} if received is None else {"amount_received": received}),
    }


def _exceptions(payment: Payment) -> list[dict[str, Any]]:
    """The payment's exceptions. The flag saves a query: most payments have none."""
    if not payment.has_exceptions:
        return []
    return [
        {"reason": each.reason, "amount": each.amount, "status": each.status, "at": iso(each.reported_at)}
        for each in payment.exceptions.all()
    ]


def _updated_at(payment: Payment, now: datetime) -> datetime:
    """The time of the last change. Expiry counts, even if it is not stored yet."""
    if payment.status_at(now) != payment.status and payment.expires_at is not None:
        return payment.expires_at
    return payment.updated_at


def _card(payment: Payment) -> dict[str, str | None] | None:
    if payment.card_last4 is None:
        return None
    return {"last4": payment.card_last4, "brand": payment.card_brand}
