"""Codes that customers scan."""

from dataclasses import dataclass
from datetime import datetime

from thaiqr.decoding import Metadata, Model


@dataclass(frozen=True, kw_only=True)
class QrCode(Model):
    """A code that a customer scans. `status`: pending, succeeded, failed, expired, refunded."""

    qr_code_id: str
    payment_id: str
    status: str
    amount: int
    amount_display: str
    currency: str
    qr_data: str
    qr_image_url: str
    payment_page_url: str
    expires_at: datetime
    reference: str | None = None
    client_name: str | None = None
    client_bank_name: str | None = None
    client_bank_account: str | None = None
    metadata: Metadata | None = None
