"""Bodies, query parameters and objects of the webhook, event and delivery resources."""

from typing import Any, ClassVar

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.fields import empty

from core.errors import FieldNotChangeable
from core.http import fields
from core.http.objects import ObjectType
from core.http.paging import PeriodPageQuery
from webhooks.destinations import TYPES
from webhooks.filters import EVENT_TYPES
from webhooks.http.url_check import MAX_URL_LENGTH
from webhooks.models import DeliveryState, EndpointStatus, EventType, Language
from webhooks.shapes import MAX_SECRET_LENGTH, MAX_SEQUENCE, DestinationObject, WebhookObject

MIN_SECRET_LENGTH = 16
MAX_EVENTS = 100


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


class _ChangeRequest(serializers.Serializer[Any]):
    shape: ClassVar[ObjectType]
    events = _events(required=False)
    status = fields.Choice(
        EndpointStatus.values,
        required=False,
        help_text="Nothing is sent while it is disabled; its events are held.",
    )

    def run_validation(self, data: Any = empty) -> Any:
        """Raises FieldNotChangeable for fields of the object that a change cannot have."""
        for name in data:
            if name in {*self.shape.__annotations__, "secret"} - {*self.fields}:
                raise FieldNotChangeable(param=name, fields=", ".join(self.fields))
        return super().run_validation(data)


class WebhookChangeRequest(_ChangeRequest):
    """Fields to change. Omitted fields do not change; the other fields of the object are refused."""

    shape = WebhookObject
    url = Url(required=False, help_text="A public https address that answers POST.")


def _to(**options: Any) -> fields.Text:
    return fields.Text(
        max_length=254,
        help_text="An email address, or the id of the LINE user, group or room: U, C or R and 32 characters.",
        **options,
    )


class _DestinationRequest(serializers.Serializer[Any]):
    token = fields.Text(
        max_length=500,
        required=False,
        help_text="The channel access token of your LINE channel. Only `line` has one, and needs it.",
    )
    language = fields.Choice(Language.values, required=False, help_text="Of the messages; Thai if omitted.")
    quiet_hours = fields.Text(
        max_length=11,
        allow_blank=True,
        required=False,
        help_text="Two times in Bangkok, such as 22:00-07:00. Messages wait for their end. Empty: none.",
    )


class NewDestinationRequest(_DestinationRequest):
    """A LINE chat or an email address that is to get messages."""

    type = fields.Choice(TYPES, help_text="line or email. It cannot be changed.")
    to = _to()
    events = _events()


class DestinationChangeRequest(_DestinationRequest, _ChangeRequest):
    """Fields to change. Omitted fields do not change; the other fields of the object are refused."""

    shape = DestinationObject
    to = _to(required=False)


class SecretRequest(serializers.Serializer[Any]):
    """The new secret."""

    secret = _secret()


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

    state = fields.Choice(DeliveryState.values, required=False, help_text="Only deliveries in this state.")
    event = fields.Choice(EVENT_TYPES, required=False, help_text="Only deliveries of events of this type.")


class ReplayRequest(serializers.Serializer[Any]):
    """The time from which events are replayed."""

    since = fields.QueryInstant(help_text="Events from this date (UTC) or instant on.")
