from core.errors import Invalid, NotFound, StateError, invalid_field
from merchants.errors import RateLimitExceeded
from webhooks.models import EventType


class WebhookNotFound(NotFound):
    code = "webhook_not_found"
    message = "No webhook {id}."


class DestinationNotFound(NotFound):
    code = "destination_not_found"
    message = "No destination {id}."


class EventNotFound(NotFound):
    code = "event_not_found"
    message = "No event {id}."


class DeliveryNotFound(NotFound):
    code = "delivery_not_found"
    message = "No delivery {id} of this webhook."


class WebhookNotTestable(StateError):
    code = "webhook_not_testable"
    message = "This webhook or destination is disabled, so nothing is sent to it."


class EmailNotConfigured(StateError):
    code = "email_not_configured"
    message = "This service cannot send emails. Its operator has set no mail server."


class TooManyDestinations(StateError):
    status = 422
    code = "too_many_destinations"
    message = "There can be {limit} destinations at most. Delete one before you create another."


class WebhookNotReplayable(StateError):
    code = "webhook_not_replayable"
    message = "This webhook is disabled, so nothing is sent to it."


class DeliveryNotRedeliverable(StateError):
    code = "delivery_not_redeliverable"
    message = "The webhook of this delivery is disabled, so nothing is sent to it."


class InvalidUrl(Invalid):
    """Blocked and unreachable URLs get the same message, or the check would work as a port scanner.

    Only test merchants read in `detail` what a look-up or a connection tells.
    """

    status = 422
    code = "invalid_url"
    message = "The URL must be a public https address, and the endpoint must answer a POST request."


class TooManyProbes(RateLimitExceeded):
    message = "Too many checks of webhook URLs. Try again in {retry_after} s."


class TooManyWebhooks(StateError):
    status = 422
    code = "too_many_webhooks"
    message = "A merchant has at most {limit} webhooks. Delete one before you create another."


InvalidSince = invalid_field(
    "since", "a date (2026-11-21) or a time (2026-11-21T10:00:00Z), not of the Buddhist calendar"
)
InvalidStatus = invalid_field("status", "active or disabled")
InvalidEvents = invalid_field("events", f"a list of at least one of {', '.join(EventType)}")
InvalidType = invalid_field("type", "line or email")
InvalidTo = invalid_field("to", "an email address, or the id of a LINE user, group or room")
InvalidToken = invalid_field("token", "the channel access token of a LINE channel; only for type line")
InvalidLanguage = invalid_field("language", "th or en")
InvalidQuietHours = invalid_field("quiet_hours", "empty, or two times such as 22:00-07:00, in Bangkok")
InvalidSecret = invalid_field(
    "secret", "a string of 16 to 255 characters; after whsec_ it is base64 of 24 to 64 bytes"
)
