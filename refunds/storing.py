"""A refund and its row of the history, written together."""

from datetime import datetime
from typing import Any

from core import ids, origin
from payments.models import Payment
from refunds.models import Refund
from transactions import services as transactions


def store(payment: Payment, amount: int, now: datetime, **fields: Any) -> Refund:
    """A refund of `amount` satang, pending unless `fields` say otherwise. The caller reserved the money."""
    refund_id, asked = ids.new("ref_", now), origin.current()
    row = transactions.record_refund(
        refund_id=refund_id,
        payment_id=payment.id,
        merchant_id=payment.merchant_id,
        amount=amount,
        currency=payment.currency,
        at=now,
    )
    refund: Refund = Refund.objects.create(
        id=refund_id,
        merchant_id=payment.merchant_id,
        payment=payment,
        transaction=row,
        amount=amount,
        currency=payment.currency,
        asked_by=asked.actor,
        asked_request_id=asked.request_id,
        created_at=now,
        updated_at=now,
        **fields,
    )
    return refund
