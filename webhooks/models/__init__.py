"""All models of the app."""

from webhooks.models.deliveries import (
    Delivery,
    DeliveryAttempt,
    DeliveryLease,
    DeliveryState,
    DeliveryTrigger,
)
from webhooks.models.endpoints import (
    NO_HOURS,
    QUIET_HOURS,
    DisabledReason,
    Endpoint,
    EndpointAction,
    EndpointActionType,
    EndpointHealth,
    EndpointQuerySet,
    EndpointStatus,
    EndpointType,
    HealthState,
    Language,
    ReplacedSecret,
    VerificationStatus,
)
from webhooks.models.events import (
    DESTINATION_PING,
    MAX_BLOCK_EVENTS,
    PING,
    Event,
    EventType,
    FeedBlock,
    StaffEventType,
    UnnumberedEvent,
)
