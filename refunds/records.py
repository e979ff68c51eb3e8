"""A refund and its row of the history, written together."""

from datetime import datetime
from typing import Any

from core import ids, request_context
from payments.models import Payment
from refunds.models import Refund
from refunds.shapes import refund_object
from transactions import services as transactions
from webhooks import events


def store(payment: Payment, amount: int, now: datetime, **fields: Any) -> Refund:
    """A refund of `amount` satang, pending unless `fields` say otherwise. The caller reserved the money."""
    refund_id, cause = ids.new("ref_", now), request_context.current()
    row = transactions.record_refund(
        refund_id=refund_id,
        payment_id=payment.id,
        merchant_id=payment.merchant_id,
        amount=amount,
        currency=payment.currency,
        now=now,
    )
    refund: Refund = Refund.objects.create(
        id=refund_id,
        merchant_id=payment.merchant_id,
        payment=payment,
        transaction=row,
        amount=amount,
        currency=payment.currency,
        actor=cause.actor,
        request_id=cause.request_id,
        created_at=now,
        updated_at=now,
        **fields,
    )
    return refund


def publish(kind: str, refund: Refund, now: datetime) -> None:
    """Tell the merchant, in the caller's transaction."""
    events.publish(events.NewEvent(refund.merchant_id, kind, refund.id, refund_object(refund), now))
