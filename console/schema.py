"""The OpenAPI description, generated from the code that answers."""

from drf_spectacular.openapi import AutoSchema


class OperationSchema(AutoSchema):
    """One operation."""
