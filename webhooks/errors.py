from core.errors import Invalid, NotFound, StateError, invalid_field
from webhooks.models import EventType


class WebhookNotFound(NotFound):
    code = "webhook_not_found"
    message = "No webhook {id}."


class EventNotFound(NotFound):
    code = "event_not_found"
    message = "No event {id}."


class DeliveryNotFound(NotFound):
    code = "delivery_not_found"
    message = "No delivery {id} of this webhook."


class WebhookNotTestable(StateError):
    code = "webhook_not_testable"
    message = "This webhook is disabled, so nothing is sent to it."


class WebhookNotReplayable(StateError):
    code = "webhook_not_replayable"
    message = "This webhook is disabled, so nothing is sent to it."


class DeliveryNotRedeliverable(StateError):
    code = "delivery_not_redeliverable"
    message = "The webhook of this delivery is disabled, so nothing is sent to it."


class InvalidUrl(Invalid):
    """Blocked and unreachable URLs get the same message, or the check would work as a port scanner."""

    status = 422
    code = "invalid_url"
    message = "The URL must be a public https address, and the endpoint must answer a POST request."


class TooManyWebhooks(StateError):
    status = 422
    code = "too_many_webhooks"
    message = "A merchant has at most {limit} webhooks. Delete one before you create another."


InvalidSince = invalid_field("since", "since is a date or an instant with its offset.")
InvalidStatus = invalid_field("status", "status is active or disabled.")
InvalidEvents = invalid_field("events", f"events lists at least one of {', '.join(EventType)}.")
InvalidSecret = invalid_field(
    "secret", "secret has 16 to 255 characters; whsec_ is followed by base64 of 24 to 64 bytes."
)
