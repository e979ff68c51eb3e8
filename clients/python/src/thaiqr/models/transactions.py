"""The history of payments and refunds."""

from dataclasses import dataclass
from datetime import datetime

from thaiqr.decoding import Model


@dataclass(frozen=True, kw_only=True)
class Transaction(Model):
    """A row of the history: payment, refund (negative amount) or failed."""

    transaction_id: str
    payment_id: str
    type: str
    status: str
    amount: int
    amount_display: str
    currency: str
    created_at: datetime
