"""What the sandbox bank and its clock answer."""

from dataclasses import dataclass
from datetime import datetime

from thaiqr.decoding import Model


@dataclass(frozen=True, kw_only=True)
class SandboxPayment(Model):
    """What the sandbox bank did with a code."""

    bank_transaction_id: str
    scenario: str
    accepted: bool


@dataclass(frozen=True, kw_only=True)
class SandboxClock(Model):
    """How far the time of a test merchant was advanced."""

    advanced_seconds: int
    advanced_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class MovedRows(Model):
    """How much of each kind came nearer by an advance of the clock."""

    qr_codes: int
    expired: int
    card_payments: int
    payment_links: int
    inquiries: int
    transfers: int
    deliveries: int
    bank_reports: int


@dataclass(frozen=True, kw_only=True)
class AdvancedSandboxClock(SandboxClock):
    """The clock after an advance, and what it moved."""

    moved: MovedRows
