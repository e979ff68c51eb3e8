"""Merchants are told of their refunds."""

from datetime import datetime

from refunds.models import Refund
from refunds.shapes import refund_object
from webhooks import events


def publish(kind: str, refund: Refund, now: datetime) -> None:
    """Tell the merchant, in the caller's transaction."""
    events.publish(events.Happening(refund.merchant_id, kind, refund.id, refund_object(refund), now))
