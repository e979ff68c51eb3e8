"""Client of Thai QR Payments: `ThaiQR`, and `AsyncThaiQR` for asyncio. The README shows how to start."""

from thaiqr import choices, failures, models, webhooks
from thaiqr._version import __version__
from thaiqr.async_client import AsyncThaiQR
from thaiqr.client import ThaiQR
from thaiqr.errors import (
    ApiError,
    AuthenticationError,
    IdempotencyError,
    NetworkError,
    NotFoundError,
    NotPaidError,
    PaymentError,
    PermissionDeniedError,
    RateLimitError,
    ServerError,
    SignatureError,
    ThaiQRError,
    UnexpectedResponseError,
    ValidationError,
)
from thaiqr.models import (
    Event,
    PaymentEvent,
    PingEvent,
    RefundEvent,
    SettlementEvent,
    UnknownEvent,
    WithdrawalEvent,
)
from thaiqr.paging import AsyncPages, Page, Pages
from thaiqr.resources import Destination

__all__ = [
    "ApiError",
    "AsyncPages",
    "AsyncThaiQR",
    "AuthenticationError",
    "Destination",
    "Event",
    "IdempotencyError",
    "NetworkError",
    "NotFoundError",
    "NotPaidError",
    "Page",
    "Pages",
    "PaymentError",
    "PaymentEvent",
    "PermissionDeniedError",
    "PingEvent",
    "RateLimitError",
    "RefundEvent",
    "ServerError",
    "SettlementEvent",
    "SignatureError",
    "ThaiQR",
    "ThaiQRError",
    "UnexpectedResponseError",
    "UnknownEvent",
    "ValidationError",
    "WithdrawalEvent",
    "__version__",
    "choices",
    "failures",
    "models",
    "webhooks",
]
