"""Take back a refund of which no bank was told."""

from datetime import datetime

from approvals import services as approvals
from core import origin
from payments.models import Payment
from refunds.models import Refund, Status
from refunds.settling import give_back
from transfers import services as transfers


def cancel(refund: Refund, payment: Payment, *, now: datetime) -> None:
    """Pending becomes canceled. The caller holds both locks. Raises transfers.AlreadyTold."""
    if refund.route:
        transfers.cancel(refund.id, now=now)
        approvals.cancel(refund.id, now=now)
    asked = origin.current()
    refund.become(
        Status.CANCELED,
        awaiting_approval=False,
        updated_at=now,
        canceled_by=asked.actor,
        canceled_request_id=asked.request_id,
    )
    give_back(refund, payment, now)
