"""Events, of webhooks and of the list."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from thaiqr.decoding import Metadata, Model, decode
from thaiqr.models.payments import PaymentException
from thaiqr.models.refunds import Refund
from thaiqr.models.settlements import Settlement
from thaiqr.models.withdrawals import Withdrawal


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
    payment_link_id: str | None = None
    amount_received: int | None = None
    fee: int | None = None
    fee_vat: int | None = None
    net: int | None = None
    payer_matches: str | None = None
    hold: str | None = None
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
    """payment.pending, .succeeded, .failed, .fee_known, .hold_lifted, .exception or .exception_resolved."""

    data: PaymentEventData


@dataclass(frozen=True, kw_only=True)
class RefundEvent(_AnyEvent):
    """refund.completed or refund.failed."""

    data: Refund


@dataclass(frozen=True, kw_only=True)
class SettlementEvent(_AnyEvent):
    """settlement.arrived."""

    data: Settlement


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


Event = PaymentEvent | RefundEvent | SettlementEvent | WithdrawalEvent | PingEvent | UnknownEvent

EVENTS: Mapping[str, type[PaymentEvent | RefundEvent | SettlementEvent | WithdrawalEvent | PingEvent]] = {
    "payment.pending": PaymentEvent,
    "payment.succeeded": PaymentEvent,
    "payment.failed": PaymentEvent,
    "payment.fee_known": PaymentEvent,
    "payment.hold_lifted": PaymentEvent,
    "payment.exception": PaymentEvent,
    "payment.exception_resolved": PaymentEvent,
    "refund.completed": RefundEvent,
    "refund.failed": RefundEvent,
    "settlement.arrived": SettlementEvent,
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
