"""The objects of the API. Amounts are integer satang, times are aware datetimes in UTC.

States and types are plain strings, because a newer service may have more of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, cast

from thaiqr.decoding import Model, decode

Metadata = Mapping[str, Any]


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
    """Money that does not fit its payment. `reason`: duplicate, amount_mismatch, late."""

    exception_id: str
    reason: str
    amount: int
    amount_display: str
    status: str
    at: datetime


@dataclass(frozen=True, kw_only=True)
class RefundSummary(Model):
    """What was refunded of a payment, in satang."""

    completed: int
    pending: int
    remaining: int


@dataclass(frozen=True, kw_only=True)
class Payment(Model):
    """A payment by QR code or card. `status`: pending, succeeded, failed, expired, refunded."""

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
    payer: Payer | None = None
    bank_transaction_id: str | None = None


@dataclass(frozen=True, kw_only=True)
class TimelineEntry(Model):
    """Something that happened to a payment."""

    at: datetime
    type: str
    summary: str
    details: Mapping[str, Any]
    actor: str | None = None
    request_id: str | None = None


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
    failure_code: str | None = None
    bank_reference: str | None = None
    metadata: Metadata | None = None
    completed_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class Balance(Model):
    """Satang. `owed` and `unconfirmed` are absent in the answer when they are zero."""

    available: int
    reserved: int
    currency: str
    owed: int = 0
    unconfirmed: int = 0


@dataclass(frozen=True, kw_only=True)
class BalanceTransaction(Model):
    """One change of the balance, with the balance after it. `source`: the id of what caused it."""

    balance_transaction_id: str
    type: str
    amount: int
    amount_display: str
    balance_after: int
    reserved_amount: int
    reserved_after: int
    unconfirmed_amount: int
    unconfirmed_after: int
    currency: str
    source: str
    created_at: datetime


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


@dataclass(frozen=True, kw_only=True)
class AccountDigits(Model):
    """How many digits an account number of a bank has."""

    min: int
    max: int


@dataclass(frozen=True, kw_only=True)
class Bank(Model):
    """A bank that withdrawals and refunds can name, by `bank_code` or `short_name`."""

    bank_code: str
    short_name: str
    name: str
    name_th: str
    account_digits: AccountDigits


@dataclass(frozen=True, kw_only=True)
class EndpointHealth(Model):
    """How deliveries to an endpoint go. `state`: healthy, failing, paused."""

    state: str
    consecutive_failures: int
    failing_since: datetime | None = None
    paused_until: datetime | None = None
    last_error: str | None = None


@dataclass(frozen=True, kw_only=True)
class Webhook(Model):
    """An endpoint that receives events. `status`: active, disabled."""

    webhook_id: str
    url: str
    events: tuple[str, ...]
    status: str
    verification: str
    health: EndpointHealth
    created_at: datetime
    disabled_reason: str | None = None
    last_ping_status: int | None = None


@dataclass(frozen=True, kw_only=True)
class WebhookSecret(Model):
    """The secret that signs the messages to an endpoint. It does not appear in `repr`."""

    webhook_id: str
    secret: str = field(repr=False)


@dataclass(frozen=True, kw_only=True)
class DeliveryAttempt(Model):
    """One try to send an event to an endpoint."""

    number: int
    started_at: datetime
    response: str
    duration_ms: int | None = None
    http_status: int | None = None
    error: str | None = None


@dataclass(frozen=True, kw_only=True)
class Delivery(Model):
    """An event on its way to an endpoint. `state`: pending, succeeded, failed, held."""

    delivery_id: str
    webhook_id: str
    event_id: str
    event: str
    state: str
    trigger: str
    created_at: datetime
    attempts: tuple[DeliveryAttempt, ...]
    next_attempt_at: datetime | None = None
    finished_at: datetime | None = None


@dataclass(frozen=True, kw_only=True)
class ReplayResult(Model):
    """How many events are sent again. With `has_more`, ask for a replay once more."""

    replayed: int
    has_more: bool


@dataclass(frozen=True, kw_only=True)
class LoggedRequest(Model):
    """A request in the request log."""

    id: str
    request_id: str
    method: str
    route: str
    path: str
    status: int
    duration_ms: int
    created_at: datetime
    error_code: str | None = None
    key: str | None = None
    idempotency: str | None = None
    payment_id: str | None = None
    address: str | None = None


@dataclass(frozen=True, kw_only=True)
class FullLoggedRequest(LoggedRequest):
    """A request in the request log with its bodies, which are redacted."""

    request_body: str | None = None
    response_body: str | None = None


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
    inquiries: int
    transfers: int
    deliveries: int
    bank_reports: int


@dataclass(frozen=True, kw_only=True)
class AdvancedSandboxClock(SandboxClock):
    """The clock after an advance, and what it moved."""

    moved: MovedRows


@dataclass(frozen=True, kw_only=True)
class PaymentEventData(Model):
    """A payment in an event. `exception` is set in the events of money that does not fit."""

    payment_id: str
    status: str
    amount: int
    amount_display: str
    currency: str
    qr_code_id: str | None = None
    reference: str | None = None
    metadata: Metadata | None = None
    failure_code: str | None = None
    amount_received: int | None = None
    exception: PaymentException | None = None


@dataclass(frozen=True, kw_only=True)
class PingData(Model):
    """The endpoint that a test message is for."""

    webhook_id: str


@dataclass(frozen=True, kw_only=True)
class _AnyEvent(Model):
    event: str
    event_id: str
    timestamp: datetime
    sequence: int | None = None


@dataclass(frozen=True, kw_only=True)
class PaymentEvent(_AnyEvent):
    """payment.pending, .succeeded, .failed, .exception or .exception_resolved."""

    data: PaymentEventData


@dataclass(frozen=True, kw_only=True)
class RefundEvent(_AnyEvent):
    """refund.completed or refund.failed."""

    data: Refund


@dataclass(frozen=True, kw_only=True)
class WithdrawalEvent(_AnyEvent):
    """withdrawal.pending, .processed, .succeeded or .failed."""

    data: Withdrawal


@dataclass(frozen=True, kw_only=True)
class PingEvent(_AnyEvent):
    """webhook.ping: a test of an endpoint."""

    data: PingData


@dataclass(frozen=True, kw_only=True)
class UnknownEvent(_AnyEvent):
    """An event of a type that this version does not know."""

    data: Mapping[str, Any]


Event = PaymentEvent | RefundEvent | WithdrawalEvent | PingEvent | UnknownEvent

EVENTS: Mapping[str, type[PaymentEvent | RefundEvent | WithdrawalEvent | PingEvent]] = {
    "payment.pending": PaymentEvent,
    "payment.succeeded": PaymentEvent,
    "payment.failed": PaymentEvent,
    "payment.exception": PaymentEvent,
    "payment.exception_resolved": PaymentEvent,
    "refund.completed": RefundEvent,
    "refund.failed": RefundEvent,
    "withdrawal.pending": WithdrawalEvent,
    "withdrawal.processed": WithdrawalEvent,
    "withdrawal.succeeded": WithdrawalEvent,
    "withdrawal.failed": WithdrawalEvent,
    "webhook.ping": PingEvent,
}
"""The class of each type of event."""


def read_event(data: Any) -> Event:
    """Read an event, of a webhook or of the list. Raises UnexpectedResponseError."""
    kind = str(data.get("event")) if isinstance(data, dict) else ""
    return cast(Event, decode(EVENTS.get(kind, UnknownEvent), data))


def read_banks(data: Any) -> tuple[Bank, ...]:
    """Read the list of banks, which has no pages. Raises UnexpectedResponseError."""
    return decode(_Banks, data).banks


@dataclass(frozen=True, kw_only=True)
class _Banks(Model):
    banks: tuple[Bank, ...]
