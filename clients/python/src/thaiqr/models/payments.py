"""Payments by QR code and card, and money that did not fit them."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from thaiqr.decoding import Metadata, Model


@dataclass(frozen=True, kw_only=True)
class Card(Model):
    """The card of a payment."""

    brand: str
    last4: str


@dataclass(frozen=True, kw_only=True)
class Payer(Model):
    """Who paid, as far as the bank says. The account is masked."""

    name: str | None = None
    bank_code: str | None = None
    bank_name: str | None = None
    bank_account: str | None = None


@dataclass(frozen=True, kw_only=True)
class PaymentException(Model):
    """Money that does not fit its payment. `reason`: duplicate, time_mismatch, amount_mismatch, late."""

    exception_id: str
    reason: str
    amount: int
    amount_display: str
    status: str
    at: datetime


@dataclass(frozen=True, kw_only=True)
class UnmatchedMoney(Model):
    """Money of the amount of an unpaid payment, with an unknown reference. The operator decides."""

    exception_id: str
    message: str
    at: datetime


@dataclass(frozen=True, kw_only=True)
class RefundSummary(Model):
    """What was refunded of a payment, in satang."""

    completed: int
    pending: int
    remaining: int


@dataclass(frozen=True, kw_only=True)
class Payment(Model):
    """A payment by QR code or card. `status`: pending, succeeded, failed, expired, refunded.

    `unmatched_money` is known of a payment that was read alone, and None in a list.
    """

    payment_id: str
    status: str
    amount: int
    amount_display: str
    currency: str
    created_at: datetime
    updated_at: datetime
    livemode: bool
    amount_refunded: int
    refunds: RefundSummary
    exceptions: tuple[PaymentException, ...]
    exceptions_has_more: bool
    fee: int | None = None
    fee_vat: int | None = None
    net: int | None = None
    payer_matches: str | None = None
    hold: str | None = None
    settlement_id: str | None = None
    payment_link_id: str | None = None
    qr_code_id: str | None = None
    reference: str | None = None
    description: str | None = None
    completed_at: datetime | None = None
    expires_at: datetime | None = None
    card: Card | None = None
    metadata: Metadata | None = None
    amount_received: int | None = None
    failure_code: str | None = None
    authorize_uri: str | None = None
    unmatched_money: UnmatchedMoney | None = None
    payer: Payer | None = None
    bank_reference: str | None = None


@dataclass(frozen=True, kw_only=True)
class TimelineEntry(Model):
    """Something that happened to a payment."""

    at: datetime
    type: str
    summary: str
    details: Mapping[str, Any]
    actor: str | None = None
    request_id: str | None = None
