from datetime import datetime
from typing import Any

from django.conf import settings

from core import money
from core.clock import iso, iso_or_none
from refunds.models import ClaimLink, Refund


def refund_object(refund: Refund) -> dict[str, Any]:
    """Return the API object, which is also `data` of refund events."""
    return {
        "refund_id": refund.id,
        "payment_id": refund.payment_id,
        "transaction_id": refund.transaction_id,
        "amount": refund.amount,
        "amount_display": money.display(refund.amount),
        "currency": refund.currency,
        "status": refund.status,
        "pending_reason": refund.pending_reason,
        "awaiting_approval": refund.awaiting_approval,
        "reason": refund.reason,
        "note": refund.note,
        "failure_code": refund.failure_code,
        "metadata": refund.metadata,
        "created_at": iso(refund.created_at),
        "updated_at": iso(refund.updated_at),
        "completed_at": iso_or_none(refund.completed_at),
    }


def claim_link_object(link: ClaimLink, now: datetime) -> dict[str, Any]:
    """The link without its secret."""
    return {
        "refund_id": link.refund_id,
        "status": link.status_at(now),
        "tries_left": link.tries_left,
        "created_at": iso(link.created_at),
        "expires_at": iso(link.expires_at),
        "used_at": iso_or_none(link.used_at),
        "revoked_at": iso_or_none(link.revoked_at),
    }


def claim_link_secret(link: ClaimLink, now: datetime) -> dict[str, Any]:
    """The link with its address."""
    return claim_link_object(link, now) | {"claim_url": f"{settings.BASE_URL}/claim/{link.token}"}
