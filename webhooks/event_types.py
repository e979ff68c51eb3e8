"""The catalogue of event types."""

from enum import StrEnum


class EventType(StrEnum):
    """What a webhook can subscribe to; `<resource>.<state>`."""

    PAYMENT_SUCCEEDED = "payment.succeeded"
    PAYMENT_FAILED = "payment.failed"
    PAYMENT_PENDING = "payment.pending"
    WITHDRAWAL_PROCESSED = "withdrawal.processed"
    WITHDRAWAL_SUCCEEDED = "withdrawal.succeeded"
    WITHDRAWAL_FAILED = "withdrawal.failed"
    WITHDRAWAL_PENDING = "withdrawal.pending"
    REFUND_COMPLETED = "refund.completed"
    REFUND_FAILED = "refund.failed"


# Asks an endpoint whether it is there. Nobody subscribes to it.
PING = "webhook.ping"
