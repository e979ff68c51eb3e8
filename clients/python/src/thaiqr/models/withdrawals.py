"""Money from the balance to a bank account."""

from dataclasses import dataclass
from datetime import datetime

from thaiqr.decoding import Metadata, Model


@dataclass(frozen=True, kw_only=True)
class Withdrawal(Model):
    """Money from the balance to a bank account.

    `status`: pending, processing, succeeded, failed, canceled.
    """

    withdrawal_id: str
    status: str
    amount: int
    amount_display: str
    currency: str
    bank_code: str
    bank_name: str
    bank_account: str
    account_name: str
    awaiting_approval: bool
    created_at: datetime
    updated_at: datetime
    pending_reason: str | None = None
    reference: str | None = None
    payout_night: str | None = None
    failure_code: str | None = None
    bank_reference: str | None = None
    metadata: Metadata | None = None
    completed_at: datetime | None = None
