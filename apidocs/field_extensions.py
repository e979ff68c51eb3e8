"""What strict fields accept, where the framework cannot tell by itself. Registered by being imported."""

from typing import Any

from drf_spectacular.extensions import OpenApiSerializerFieldExtension

PLAIN_TEXT = "^[^\\u0000\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]*$"
DAY_OR_INSTANT = [{"type": "string", "format": "date"}, {"type": "string", "format": "date-time"}]


class TextField(OpenApiSerializerFieldExtension):
    target_class = "core.fields.Text"

    def map_serializer_field(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        return {"type": "string", "minLength": 1, "pattern": PLAIN_TEXT}


class TokenIdField(OpenApiSerializerFieldExtension):
    target_class = "payments.serializers.TokenId"

    def map_serializer_field(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        return {"type": "string", "pattern": "^[0-9A-Za-z_-]{1,128}$"}


class MetadataField(OpenApiSerializerFieldExtension):
    target_class = "core.fields.Metadata"

    def map_serializer_field(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        return {"type": "object", "maxProperties": 50, "additionalProperties": True}


class QueryInstantField(OpenApiSerializerFieldExtension):
    target_class = "core.fields.QueryInstant"

    def map_serializer_field(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        return {"anyOf": DAY_OR_INSTANT}


class SandboxInstantField(OpenApiSerializerFieldExtension):
    target_class = "sandbox.serializers.InstantField"

    def map_serializer_field(self, auto_schema: Any, direction: Any) -> dict[str, Any]:
        return {"type": "string", "format": "date-time"}
