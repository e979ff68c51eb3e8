"""The objects of the API. Amounts are integer satang, times are aware datetimes in UTC.

States and types are plain strings, because a newer service may have more of them.
"""

from thaiqr.decoding import Metadata
from thaiqr.models.balance import Balance, BalanceTransaction
from thaiqr.models.banks import AccountDigits, Bank, read_banks
from thaiqr.models.events import (
    EVENTS,
    Event,
    PaymentEvent,
    PaymentEventData,
    PingData,
    PingEvent,
    RefundEvent,
    SettlementEvent,
    UnknownEvent,
    WithdrawalEvent,
    read_event,
)
from thaiqr.models.payment_links import PaymentLink
from thaiqr.models.payments import (
    Card,
    Payer,
    Payment,
    PaymentException,
    RefundSummary,
    TimelineEntry,
    UnmatchedMoney,
)
from thaiqr.models.qr_codes import QrCode
from thaiqr.models.refunds import ClaimLink, ClaimLinkSecret, Refund
from thaiqr.models.requests import FullLoggedRequest, LoggedRequest
from thaiqr.models.sandbox import AdvancedSandboxClock, MovedRows, SandboxClock, SandboxPayment
from thaiqr.models.settlements import Settlement
from thaiqr.models.slips import Slip
from thaiqr.models.transactions import Transaction
from thaiqr.models.webhooks import (
    Delivery,
    DeliveryAttempt,
    EndpointHealth,
    EventDestination,
    ReplayResult,
    Webhook,
    WebhookSecret,
)
from thaiqr.models.withdrawals import Withdrawal

__all__ = [
    "EVENTS",
    "AccountDigits",
    "AdvancedSandboxClock",
    "Balance",
    "BalanceTransaction",
    "Bank",
    "Card",
    "ClaimLink",
    "ClaimLinkSecret",
    "Delivery",
    "DeliveryAttempt",
    "EndpointHealth",
    "Event",
    "EventDestination",
    "FullLoggedRequest",
    "LoggedRequest",
    "Metadata",
    "MovedRows",
    "Payer",
    "Payment",
    "PaymentEvent",
    "PaymentEventData",
    "PaymentException",
    "PaymentLink",
    "PingData",
    "PingEvent",
    "QrCode",
    "Refund",
    "RefundEvent",
    "RefundSummary",
    "ReplayResult",
    "SandboxClock",
    "SandboxPayment",
    "Settlement",
    "SettlementEvent",
    "Slip",
    "TimelineEntry",
    "Transaction",
    "UnknownEvent",
    "UnmatchedMoney",
    "Webhook",
    "WebhookSecret",
    "Withdrawal",
    "WithdrawalEvent",
    "read_banks",
    "read_event",
]
