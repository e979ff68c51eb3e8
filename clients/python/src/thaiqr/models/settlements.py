"""What acquirers transfer for card payments."""

from dataclasses import dataclass
from datetime import datetime

from thaiqr.decoding import Model


@dataclass(frozen=True, kw_only=True)
class Settlement(Model):
    """What an acquirer transfers for your card payments, in one transfer. `payments`: how many.

    `status`: expected, arrived, late, differs.
    """

    settlement_id: str
    acquirer: str
    status: str
    gross: int
    fee: int
    fee_vat: int
    net: int
    net_display: str
    currency: str
    payments: int
    expected_at: datetime
    created_at: datetime
    arrived_at: datetime | None = None
