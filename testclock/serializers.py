from typing import Any

from rest_framework import serializers

from core.http import fields
from testclock.models import MAX_SECONDS


class AdvanceRequest(serializers.Serializer[Any]):
    """How far to advance the time: exactly one of the two fields."""

    advance_seconds = fields.Integer(unit="seconds", min_value=1, max_value=MAX_SECONDS, required=False)
    advance_minutes = fields.Integer(unit="minutes", min_value=1, max_value=MAX_SECONDS // 60, required=False)
