"""The log of a merchant's own requests."""

from dataclasses import dataclass
from datetime import datetime

from thaiqr.decoding import Model


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
