from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from core import answers, fields
from webhooks.event_types import EventType
from webhooks.models import Condition, DisabledReason, EndpointStatus, Verification
from webhooks.targets import LONGEST_URL

SHORTEST_SECRET, LONGEST_SECRET = 16, 255
LONGEST_EVENTS = 100


@extend_schema_field({"type": "string", "format": "uri", "maxLength": LONGEST_URL, "pattern": "^https://"})
class Url(fields.Text):
    """Judged by `webhooks.targets`, not here: every fault of it is one and the same refusal."""


def _events(**options: Any) -> serializers.ListField:
    return serializers.ListField(
        child=fields.Choice(list(EventType)),
        min_length=1,
        max_length=LONGEST_EVENTS,
        help_text="What to send; a type that is named twice counts once.",
        **options,
    )


def _secret() -> fields.Text:
    return fields.Text(
        min_length=SHORTEST_SECRET,
        max_length=LONGEST_SECRET,
        required=False,
        help_text="Signs messages: whsec_ and base64 of 24 to 64 bytes, or 16 characters or more. Made "
        "when omitted.",
    )


class WebhookRequest(serializers.Serializer[Any]):
    """What a merchant registers."""

    url = Url(help_text="A public https address that answers POST.")
    events = _events()
    secret = _secret()


class WebhookChangeRequest(serializers.Serializer[Any]):
    """What is to be changed; the rest stays."""

    url = Url(required=False, help_text="A public https address that answers POST.")
    events = _events(required=False)
    status = fields.Choice(
        EndpointStatus.values, required=False, help_text="Whether it is sent anything; disabled holds events."
    )


class SecretRequest(serializers.Serializer[Any]):
    """The secret to sign with from now on."""

    secret = _secret()


class HealthObject(serializers.Serializer[Any]):
    """How a webhook answers lately."""

    state = serializers.ChoiceField(
        Condition.values, help_text="paused: left alone until paused_until, and no attempts are used up."
    )
    consecutive_failures = serializers.IntegerField(min_value=0)
    failing_since = answers.instant(allow_null=True)
    paused_until = answers.instant(
        allow_null=True, help_text="From then on one delivery at a time tries; a success ends the pause."
    )
    last_error = serializers.CharField(
        max_length=20, allow_null=True, help_text="Such as timeout, dns, tls_cert or http_5xx."
    )


class WebhookObject(serializers.Serializer[Any]):
    webhook_id = answers.public_id("wh_")
    url = answers.Shaped({"format": "uri", "maxLength": LONGEST_URL})
    events = serializers.ListField(
        child=serializers.ChoiceField(list(EventType)), min_length=1, max_length=len(EventType)
    )
    status = serializers.ChoiceField(EndpointStatus.choices)
    disabled_reason = serializers.ChoiceField(
        DisabledReason.values,
        allow_null=True,
        help_text="gone: it answered 410; failing: for days; merchant or staff: somebody asked for it.",
    )
    verification = serializers.ChoiceField(
        Verification.values,
        help_text="unverified: the URL has not yet answered a signed request with 2xx. It gets one attempt "
        "at a time and four a minute; the rest waits. A 2xx to a ping, a test or an event verifies it.",
    )
    health = HealthObject()
    created_at = answers.instant()


class WebhookSecret(serializers.Serializer[Any]):
    webhook_id = answers.public_id("wh_")
    secret = serializers.CharField(max_length=LONGEST_SECRET, help_text="Signs every message.")


class WebhookList(answers.Page):
    """A page of webhooks."""

    webhooks = WebhookObject(many=True)


class PingData(serializers.Serializer[Any]):
    """The data of a `webhook.ping`."""

    webhook_id = answers.public_id("wh_")


WEBHOOK_REQUEST = WebhookRequest()
WEBHOOK_CHANGE = WebhookChangeRequest()
SECRET_REQUEST = SecretRequest()
