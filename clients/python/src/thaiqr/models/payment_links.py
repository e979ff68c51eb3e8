"""Pages on which customers pay."""

from dataclasses import dataclass
from datetime import datetime

from thaiqr.decoding import Metadata, Model


@dataclass(frozen=True, kw_only=True)
class PaymentLink(Model):
    """A page on which customers pay. `payments`: how many succeeded.

    `status`: active, completed, expired, deactivated.
    """

    payment_link_id: str
    url: str
    status: str
    currency: str
    payments: int
    open_codes: int
    expiry_minutes: int
    expires_at: datetime
    created_at: datetime
    amount: int | None = None
    amount_display: str | None = None
    amount_min: int | None = None
    amount_max: int | None = None
    description: str | None = None
    reference: str | None = None
    metadata: Metadata | None = None
    max_payments: int | None = None
    deactivated_at: datetime | None = None
