from typing import Any

from rest_framework import serializers


class NotificationAnswer(serializers.Serializer[Any]):
    """What the sandbox bank wants to hear; other banks are answered in their own words."""

    status = serializers.ChoiceField(["received", "parked"])
