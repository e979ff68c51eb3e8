"""The tables of webhooks."""

from webhooks.models.deliveries import Attempt, Delivery, DeliveryState, Event, Trigger
from webhooks.models.endpoints import (
    Act,
    Condition,
    DisabledReason,
    Endpoint,
    EndpointAct,
    EndpointStatus,
    Health,
)

__all__ = [
    "Act",
    "Attempt",
    "Condition",
    "Delivery",
    "DeliveryState",
    "DisabledReason",
    "Endpoint",
    "EndpointAct",
    "EndpointStatus",
    "Event",
    "Health",
    "Trigger",
]
