"""Bodies, query parameters and objects of the webhook, event and delivery resources."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.fields import empty

from core import fields, paging, response_fields
from core.errors import FieldNotChangeable
from core.paging import PeriodPageQuery
from webhooks.filters import EVENT_TYPES, SHOWN_STATES
from webhooks.http.url_check import MAX_URL_LENGTH
from webhooks.models import (
    DeliveryTrigger,
    DisabledReason,
    EndpointStatus,
    EventType,
    HealthState,
    VerificationStatus,
)
from webhooks.redelivery import MAX_REPLAYED
from webhooks.shapes import MAX_RESPONSE_LENGTH

MIN_SECRET_LENGTH, MAX_SECRET_LENGTH = 16, 255
MAX_EVENTS = 100
MAX_SEQUENCE = 10**15


@extend_schema_field({"type": "string", "format": "uri", "maxLength": MAX_URL_LENGTH, "pattern": "^https://"})
class Url(fields.Text):
    """`webhooks.http.url_check` checks it, so that all errors of a URL give the same response."""


def _events(**options: Any) -> fields.Choices:
    return fields.Choices(
        list(EventType),
        min_length=1,
        max_length=MAX_EVENTS,
        help_text="Types of events to send. A type that is listed twice counts once.",
        **options,
    )


def _secret() -> fields.Text:
    return fields.Text(
        min_length=MIN_SECRET_LENGTH,
        max_length=MAX_SECRET_LENGTH,
        required=False,
        help_text="Signs messages: whsec_ and base64 of 24 to 64 bytes, or at least 16 characters. "
        "Generated if omitted.",
    )


class WebhookRequest(serializers.Serializer[Any]):
    """A webhook to register."""

    url = Url(help_text="A public https address that answers POST.")
    events = _events()
    secret = _secret()


class WebhookChangeRequest(serializers.Serializer[Any]):
    """Fields to change. Omitted fields do not change; the other fields of the object are refused."""

    url = Url(required=False, help_text="A public https address that answers POST.")
    events = _events(required=False)
    status = fields.Choice(
        EndpointStatus.values,
        required=False,
        help_text="A disabled webhook gets nothing; its events are held.",
    )

    def run_validation(self, data: Any = empty) -> Any:
        for name in data:
            if name in UNCHANGEABLE:
                raise FieldNotChangeable(param=name, fields=", ".join(self.fields))
        return super().run_validation(data)


class SecretRequest(serializers.Serializer[Any]):
    """The new secret."""

    secret = _secret()


class HealthObject(serializers.Serializer[Any]):
    """How a webhook answered lately."""

    state = serializers.ChoiceField(
        HealthState.values, help_text="paused: gets nothing until paused_until, and uses no attempts."
    )
    consecutive_failures = serializers.IntegerField(min_value=0)
    failing_since = response_fields.instant(allow_null=True)
    paused_until = response_fields.instant(
        allow_null=True, help_text="From then on it gets one delivery at a time. A success ends the pause."
    )
    last_error = serializers.CharField(
        max_length=20, allow_null=True, help_text="Such as timeout, dns, tls_cert or http_5xx."
    )


class WebhookObject(serializers.Serializer[Any]):
    webhook_id = response_fields.public_id("wh_")
    url = response_fields.PatternField({"format": "uri", "maxLength": MAX_URL_LENGTH})
    events = serializers.ListField(
        child=serializers.ChoiceField(list(EventType)), min_length=1, max_length=len(EventType)
    )
    status = serializers.ChoiceField(EndpointStatus.choices)
    disabled_reason = serializers.ChoiceField(
        DisabledReason.values,
        allow_null=True,
        help_text="gone: it answered 410. failing: for five days. merchant or staff: who disabled it.",
    )
    verification = serializers.ChoiceField(
        VerificationStatus.values,
        help_text="unverified: the URL has not answered a signed request with 2xx so far. It gets one "
        "attempt at a time and four a minute; others wait. A 2xx to a ping, test or event verifies it.",
    )
    last_ping_status = serializers.IntegerField(
        min_value=100,
        max_value=599,
        allow_null=True,
        help_text="The HTTP status of the answer to `webhook.ping`, when the URL was registered or changed. "
        "Null if none was sent.",
    )
    health = HealthObject()
    created_at = response_fields.instant()


class WebhookSecret(serializers.Serializer[Any]):
    webhook_id = response_fields.public_id("wh_")
    secret = serializers.CharField(max_length=MAX_SECRET_LENGTH, help_text="Signs every message.")


class WebhookList(response_fields.Page):
    """A page of webhooks."""

    webhooks = WebhookObject(many=True)


class PingData(serializers.Serializer[Any]):
    """The data of a `webhook.ping`."""

    webhook_id = response_fields.public_id("wh_")


UNCHANGEABLE = {*WebhookObject().fields, "secret"} - {*WebhookChangeRequest().fields}
WEBHOOK_REQUEST = WebhookRequest()
WEBHOOK_CHANGE = WebhookChangeRequest()
SECRET_REQUEST = SecretRequest()


class EventQuery(PeriodPageQuery):
    """Filters of the list of events."""

    event = fields.Choice(EVENT_TYPES, required=False, help_text="Only events of this type.")
    after_sequence = fields.QueryInteger(
        min_value=0,
        max_value=MAX_SEQUENCE,
        required=False,
        help_text="The feed: the events with a higher `sequence`, the lowest first. 0 begins with the first "
        "event. Only with `limit`.",
    )

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        """Refuse filters and positions of the other order beside `after_sequence`."""
        names = set(map(str, self.fields)) - {"after_sequence", "limit"}
        others = sorted(names.intersection(data))
        if "after_sequence" in data and others:
            raise serializers.ValidationError({others[0]: ["must be absent with after_sequence"]})
        return super().to_internal_value(data)


class DeliveryQuery(PeriodPageQuery):
    """Filters of the list of deliveries."""

    state = fields.Choice(SHOWN_STATES, required=False, help_text="Only deliveries in this state.")
    event = fields.Choice(EVENT_TYPES, required=False, help_text="Only deliveries of events of this type.")


class ReplayRequest(serializers.Serializer[Any]):
    """The time from which events are replayed."""

    since = fields.QueryInstant(help_text="Events from this date (UTC) or instant on.")


class EventObject(serializers.Serializer[Any]):
    """An event as it was sent, and its place in the feed."""

    event = serializers.ChoiceField(EVENT_TYPES)
    event_id = response_fields.public_id("evt_")
    data = serializers.DictField(  # type: ignore[assignment]
        help_text="As in the message of this type."
    )
    timestamp = response_fields.instant()
    sequence = serializers.IntegerField(
        min_value=1,
        max_value=MAX_SEQUENCE,
        allow_null=True,
        help_text="The place in the feed: 1, 2, 3 and so on, without gaps. It never changes. Null only while "
        "many older events wait for theirs. Messages do not have it.",
    )


class EventList(response_fields.CursorPage):
    """A page of events."""

    total = serializers.IntegerField(
        min_value=0, help_text="The number of all results; with `after_sequence`, of those that follow it."
    )
    offset = serializers.IntegerField(
        min_value=0,
        max_value=paging.MAX_OFFSET,
        required=False,
        help_text="Absent with `after`, `before` or `after_sequence`.",
    )
    events = EventObject(many=True)


class DeliveryAttemptObject(serializers.Serializer[Any]):
    """One HTTP request and its result."""

    number = serializers.IntegerField(min_value=1, help_text="A replay counts from 1 again.")
    started_at = response_fields.instant()
    duration_ms = serializers.IntegerField(min_value=0, allow_null=True)
    http_status = serializers.IntegerField(
        min_value=100, max_value=999, allow_null=True, help_text="Null without a response."
    )
    error = serializers.CharField(
        max_length=20,
        allow_null=True,
        help_text="Such as timeout, dns, tls_cert or http_5xx; null for a 2xx.",
    )
    response = serializers.CharField(
        max_length=MAX_RESPONSE_LENGTH, allow_blank=True, help_text="The beginning of the response."
    )


class DeliveryObject(serializers.Serializer[Any]):
    delivery_id = response_fields.public_id("dlv_")
    webhook_id = response_fields.public_id("wh_")
    event_id = response_fields.public_id("evt_")
    event = serializers.ChoiceField(EVENT_TYPES)
    state = serializers.ChoiceField(
        SHOWN_STATES, help_text="held: waits for a replay, because the webhook was disabled."
    )
    trigger = serializers.ChoiceField(
        DeliveryTrigger.values, help_text="manual: by test or redeliver, with one attempt."
    )
    created_at = response_fields.instant()
    next_attempt_at = response_fields.instant(allow_null=True, help_text="Null if no attempt follows.")
    finished_at = response_fields.instant(allow_null=True)
    attempts = DeliveryAttemptObject(many=True)


class DeliveryList(response_fields.CursorPage):
    """A page of deliveries."""

    deliveries = DeliveryObject(many=True)


class ReplayResultObject(serializers.Serializer[Any]):
    """The result of a replay."""

    replayed = serializers.IntegerField(min_value=0, max_value=MAX_REPLAYED, help_text="Events.")
    has_more = serializers.BooleanField(help_text="Another replay sends the rest.")


REPLAY_REQUEST = ReplayRequest()
