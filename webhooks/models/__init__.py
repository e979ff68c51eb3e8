"""The tables of webhooks."""

from webhooks.models.deliveries import Attempt, Counted, Delivery, DeliveryState, Event, Tally, Trigger
from webhooks.models.endpoints import (
    Act,
    Condition,
    DisabledReason,
    Endpoint,
    EndpointAct,
    EndpointStatus,
    Health,
    Verification,
)

__all__ = [
    "Act",
    "Attempt",
    "Condition",
    "Counted",
    "Delivery",
    "DeliveryState",
    "DisabledReason",
    "Endpoint",
    "EndpointAct",
    "EndpointStatus",
    "Event",
    "Health",
    "Tally",
    "Trigger",
    "Verification",
]
