"""Endpoints, their secrets and deliveries."""

from dataclasses import dataclass, field
from datetime import datetime

from thaiqr.decoding import Model


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
class EventDestination(Model):
    """A LINE chat or an email address that gets messages. `type`: line, email."""

    destination_id: str
    type: str
    to: str
    events: tuple[str, ...]
    language: str
    status: str
    health: EndpointHealth
    created_at: datetime
    quiet_hours: str | None = None
    disabled_reason: str | None = None


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
    """An event on its way to a webhook or a destination. `state`: pending, succeeded, failed, held."""

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
