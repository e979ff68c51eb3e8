"""What was told, to whom, and how it went: the fields of events and deliveries, and their filters."""

from typing import Any

from rest_framework import serializers

from core import answers, fields
from core.paging import PageQuery
from webhooks.event_types import PING, EventType
from webhooks.models import DeliveryState, Trigger
from webhooks.replays import REPLAYED_AT_ONCE
from webhooks.shapes import LONGEST_RESPONSE

EVENTS = [*EventType, PING]
# A worker's hold on a delivery is not shown: it still waits.
STATES = [state.value for state in DeliveryState if state is not DeliveryState.LEASED]


class EventQuery(PageQuery):
    """Filters of the list of events."""

    event = fields.Choice(EVENTS, required=False, help_text="Only events of this type.")
    start_date = fields.QueryInstant(required=False, help_text="From this date (UTC) or instant on.")
    end_date = fields.QueryInstant(
        end=True, required=False, help_text="Up to this date (UTC) or instant, inclusive."
    )

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        return fields.ordered_dates(attrs)


class DeliveryQuery(PageQuery):
    """Filters of the list of deliveries."""

    state = fields.Choice(STATES, required=False, help_text="Only deliveries in this state.")
    event = fields.Choice(EVENTS, required=False, help_text="Only deliveries of events of this type.")


class ReplayRequest(serializers.Serializer[Any]):
    """From when on an endpoint is to be told again."""

    since = fields.QueryInstant(help_text="Events from this date (UTC) or instant on.")


class EventObject(serializers.Serializer[Any]):
    """An event as it was sent."""

    event = serializers.ChoiceField(EVENTS)
    event_id = answers.public_id("evt_")
    data = serializers.DictField(  # type: ignore[assignment]
        help_text="As in the message of this type."
    )
    timestamp = answers.instant()


class EventList(answers.Page):
    """A page of events."""

    events = EventObject(many=True)


class AttemptObject(serializers.Serializer[Any]):
    """One post and what came back."""

    number = serializers.IntegerField(min_value=1, help_text="A replay counts from 1 again.")
    started_at = answers.instant()
    duration_ms = serializers.IntegerField(min_value=0, allow_null=True)
    http_status = serializers.IntegerField(
        min_value=100, max_value=999, allow_null=True, help_text="Null where no answer came."
    )
    error = serializers.CharField(
        max_length=20,
        allow_null=True,
        help_text="Such as timeout, dns, tls_cert or http_5xx; null for a 2xx.",
    )
    response = serializers.CharField(
        max_length=LONGEST_RESPONSE, allow_blank=True, help_text="The beginning of the answer."
    )


class DeliveryObject(serializers.Serializer[Any]):
    delivery_id = answers.public_id("dlv_")
    webhook_id = answers.public_id("wh_")
    event_id = answers.public_id("evt_")
    event = serializers.ChoiceField(EVENTS)
    state = serializers.ChoiceField(STATES, help_text="held: kept while the webhook is disabled.")
    trigger = serializers.ChoiceField(
        Trigger.values, help_text="manual: asked for by test or redeliver; one attempt."
    )
    created_at = answers.instant()
    next_attempt_at = answers.instant(allow_null=True, help_text="Null where no attempt follows.")
    finished_at = answers.instant(allow_null=True)
    attempts = AttemptObject(many=True)


class DeliveryList(answers.Page):
    """A page of deliveries."""

    deliveries = DeliveryObject(many=True)


class ReplayObject(serializers.Serializer[Any]):
    """What a replay sends."""

    replayed = serializers.IntegerField(min_value=0, max_value=REPLAYED_AT_ONCE, help_text="Events.")
    has_more = serializers.BooleanField(help_text="Ask again for the rest.")


REPLAY_REQUEST = ReplayRequest()
