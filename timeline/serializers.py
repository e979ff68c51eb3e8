from typing import Any

from rest_framework import serializers

from core import response_fields
from reconciliation.models import ReportSource
from timeline.entries import TimelineEntryType


class TimelineEntrySerializer(serializers.Serializer[Any]):
    at = response_fields.instant()
    type = serializers.ChoiceField([type.value for type in TimelineEntryType])
    actor = serializers.CharField(
        max_length=160,
        allow_null=True,
        help_text="Who caused it: `key:` with the first characters of one of your keys, `bank:` with its "
        "name, `staff`, `policy:` with its name, or `clock` for the service itself. Null if unknown.",
    )
    request_id = response_fields.PatternField(
        {"pattern": "^[A-Za-z0-9._-]{1,64}$"},
        allow_null=True,
        help_text="The `X-Request-Id` of the request that caused it, or the id of the service's task.",
    )
    summary = serializers.CharField(
        help_text="For people. The wording may change; programs read the other fields."
    )
    details = serializers.DictField(help_text="Fields of this type; amounts are satang.")


class Timeline(response_fields.Page):
    """A page of a timeline."""

    timeline = TimelineEntrySerializer(many=True)
    sources = serializers.ListField(
        child=serializers.ChoiceField(ReportSource.values),
        help_text="How the bank reported the money that paid, or else the money that did not fit.",
    )
