"""The tables of webhooks."""

from webhooks.models.deliveries import Attempt, Delivery, DeliveryState, Event, Trigger
from webhooks.models.endpoints import Endpoint, EndpointStatus, Health

__all__ = [
    "Attempt",
    "Delivery",
    "DeliveryState",
    "Endpoint",
    "EndpointStatus",
    "Event",
    "Health",
    "Trigger",
]
