"""The parts of the OpenAPI document that many operations share."""

from typing import Any

from core.http.openapi import words_of

Json = dict[str, Any]
PARTS: Json = words_of(__file__)
