from typing import Any

from core import money
from core.clock import iso, iso_or_none
from refunds.models import Refund


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
