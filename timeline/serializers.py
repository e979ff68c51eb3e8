from typing import Any

from rest_framework import serializers

from core import response_fields
from reconciliation.models import ReportSource
from timeline.entries import TimelineEntryType


class TimelineEntrySerializer(serializers.Serializer[Any]):
    """Something that happened to a payment."""

    at = response_fields.instant()
    type = serializers.ChoiceField([type.value for type in TimelineEntryType])
    actor = serializers.CharField(
        max_length=160,
        allow_null=True,
        help_text="Who caused it: `key:` with the first characters of one of your keys, `bank:` with its "
        "name, `staff`, `policy:` with its name, or `clock`: the service by itself. Null where nobody knows.",
    )
    request_id = response_fields.PatternField(
        {"pattern": "^[A-Za-z0-9._-]{1,64}$"},
        allow_null=True,
        help_text="The `X-Request-Id` of the request that caused it; of the service's own work its id.",
    )
    summary = serializers.CharField(help_text="For people. It may change; programs read the rest.")
    details = serializers.DictField(help_text="What belongs to this type; amounts are satang.")


class Timeline(response_fields.Page):
    """A page of what happened to a payment."""

    timeline = TimelineEntrySerializer(many=True)
    sources = serializers.ListField(
        child=serializers.ChoiceField(ReportSource.values),
        help_text="By which ways the bank told of the money that paid, or else of money that did not fit.",
    )
