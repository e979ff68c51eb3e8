"""What banks say about a payer's slip."""

from dataclasses import dataclass
from datetime import datetime

from thaiqr.decoding import Model


@dataclass(frozen=True, kw_only=True)
class Slip(Model):
    """What banks say about the transfer on a payer's slip. It credits nothing.

    `verdict`: valid, repeated, wrong_amount, wrong_receiver, not_found, unreadable, unknown.
    """

    slip_id: str
    verdict: str
    payment_id: str | None = None
    bank: str | None = None
    transferred_at: datetime | None = None
    amount: int | None = None
    amount_display: str | None = None
    payer: str | None = None
