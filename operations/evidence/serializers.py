from typing import Any

from rest_framework import serializers

from core.http import fields
from operations.evidence import files


class EvidenceQuery(serializers.Serializer[Any]):
    """Parameters of the evidence."""

    format = fields.Choice(
        list(files.CONTENT_TYPES), default=files.JSON, help_text="`pdf` is a document in Thai, to print."
    )
