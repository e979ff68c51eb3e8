from core.errors import Invalid, NotFound, StateError, invalid_field
from merchants.errors import RateLimitExceeded
from webhooks.models import EventType

WebhookNotFound = NotFound.of("webhook_not_found", "No webhook {id}.")
DestinationNotFound = NotFound.of("destination_not_found", "No destination {id}.")
EventNotFound = NotFound.of("event_not_found", "No event {id}.")
DeliveryNotFound = NotFound.of("delivery_not_found", "No delivery {id} of this webhook.")
WebhookNotTestable = StateError.of(
    "webhook_not_testable", "This webhook or destination is disabled, so nothing is sent to it."
)
EmailNotConfigured = StateError.of(
    "email_not_configured", "This service cannot send emails. Its operator has set no mail server."
)
TooManyDestinations = StateError.of(
    "too_many_destinations",
    "There can be {limit} destinations at most. Delete one before you create another.",
    status=422,
)
WebhookNotReplayable = StateError.of(
    "webhook_not_replayable", "This webhook is disabled, so nothing is sent to it."
)
DeliveryNotRedeliverable = StateError.of(
    "delivery_not_redeliverable", "The webhook of this delivery is disabled, so nothing is sent to it."
)


class InvalidUrl(Invalid):
    """Blocked and unreachable URLs get the same message, or the check would work as a port scanner.

    Only test merchants read in `detail` what a look-up or a connection tells.
    """

    status = 422
    code = "invalid_url"
    message = "The URL must be a public https address, and the endpoint must answer a POST request."


TooManyProbes = RateLimitExceeded.worded("Too many checks of webhook URLs. Try again in {retry_after} s.")
TooManyWebhooks = StateError.of(
    "too_many_webhooks",
    "A merchant has at most {limit} webhooks. Delete one before you create another.",
    status=422,
)
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
