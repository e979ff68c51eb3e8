from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from core import answers, fields
from webhooks.event_types import EventType
from webhooks.models import EndpointStatus
from webhooks.targets import LONGEST_URL

LONGEST_SECRET = 255
LONGEST_EVENTS = 100


@extend_schema_field({"type": "string", "format": "uri", "maxLength": LONGEST_URL, "pattern": "^https://"})
class Url(fields.Text):
    """Judged by `webhooks.targets`, not here: every fault of it is one and the same refusal."""


class WebhookRequest(serializers.Serializer[Any]):
    """What a merchant registers."""

    url = Url(help_text="A public https address that answers POST.")
    events = serializers.ListField(
        child=fields.Choice(list(EventType)),
        min_length=1,
        max_length=LONGEST_EVENTS,
        help_text="What to send; a type that is named twice counts once.",
    )
    secret = fields.Text(
        max_length=LONGEST_SECRET,
        required=False,
        help_text="Signs messages: whsec_ and base64 of 24 to 64 bytes, or any text. Made when omitted.",
    )


class WebhookObject(serializers.Serializer[Any]):
    webhook_id = answers.public_id("wh_")
    url = answers.Shaped({"format": "uri", "maxLength": LONGEST_URL})
    events = serializers.ListField(
        child=serializers.ChoiceField(list(EventType)), min_length=1, max_length=len(EventType)
    )
    status = serializers.ChoiceField(EndpointStatus.choices)
    created_at = answers.instant()


class WebhookList(answers.Page):
    """A page of webhooks."""

    webhooks = WebhookObject(many=True)


class PingData(serializers.Serializer[Any]):
    """The data of a `webhook.ping`."""

    webhook_id = answers.public_id("wh_")


WEBHOOK_REQUEST = WebhookRequest()
