from typing import Any

from rest_framework import serializers

from core import answers, fields
from webhooks.event_types import EventType
from webhooks.models import EndpointStatus
from webhooks.targets import LONGEST_URL

LONGEST_SECRET = 255
LONGEST_EVENTS = 100


class WebhookRequest(serializers.Serializer[Any]):
    """What a merchant registers."""

    url = fields.Text(help_text="A public https address that answers POST.")
    events = serializers.ListField(
        child=fields.Choice(list(EventType)),
        allow_empty=False,
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
    webhooks = WebhookObject(many=True)


class PingData(serializers.Serializer[Any]):
    """The data of a `webhook.ping`."""

    webhook_id = answers.public_id("wh_")


WEBHOOK_REQUEST = WebhookRequest()
