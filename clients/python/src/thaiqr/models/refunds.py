"""Refunds, and the links by which payers name their accounts."""

from dataclasses import dataclass, field
from datetime import datetime

from thaiqr.decoding import Metadata, Model


@dataclass(frozen=True, kw_only=True)
class Refund(Model):
    """Money on its way back. `status`: pending, completed, failed, canceled."""

    refund_id: str
    payment_id: str
    transaction_id: str
    status: str
    amount: int
    amount_display: str
    currency: str
    awaiting_approval: bool
    created_at: datetime
    updated_at: datetime
    pending_reason: str | None = None
    reason: str | None = None
    note: str | None = None
    failure_code: str | None = None
    metadata: Metadata | None = None
    completed_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class ClaimLink(Model):
    """The link by which a payer names the account. `status`: open, blocked, used, expired, revoked."""

    refund_id: str
    status: str
    tries_left: int
    created_at: datetime
    expires_at: datetime
    used_at: datetime | None = None
    revoked_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class ClaimLinkSecret(ClaimLink):
    """A claim link with its address, which does not appear in `repr`."""

    claim_url: str = field(repr=False)
