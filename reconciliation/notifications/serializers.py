from typing import Any

from rest_framework import serializers


class NotificationAnswer(serializers.Serializer[Any]):
    """What the sandbox bank expects. Other banks get answers in their own format."""

    status = serializers.ChoiceField(["received", "parked"])
