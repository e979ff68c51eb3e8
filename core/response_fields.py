"""Fields of responses with exact schemas, so that OpenAPI objects need no additional properties."""

from typing import Any

from drf_spectacular.drainage import set_override
from rest_framework import serializers

from core import ids, money, paging

MAX_SATANG = 10**12
"""Satang: more than any bank moves at once."""
INSTANT_SCHEMA = {"format": "date-time", "pattern": r"^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}\.\d{3}Z$"}


class PatternField(serializers.CharField):
    """Text of a given JSON schema."""

    def __init__(self, shape: dict[str, Any], **kwargs: Any) -> None:
        super().__init__(**kwargs)
        set_override(self, "field", {"type": "string", **shape})


def id_schema(prefix: str) -> dict[str, Any]:
    return {"type": "string", "pattern": f"^{prefix}[0-9A-Za-z]{{{ids.BODY_LENGTH}}}$"}


def public_id(prefix: str, **kwargs: Any) -> PatternField:
    return PatternField(id_schema(prefix), **kwargs)


def instant(**kwargs: Any) -> PatternField:
    """UTC, to the millisecond."""
    return PatternField(INSTANT_SCHEMA, **kwargs)


def currency() -> serializers.ChoiceField:
    return serializers.ChoiceField([money.CURRENCY])


class Satang(serializers.IntegerField):
    """An amount. CSV files also show it in baht."""


def satang(
    low: int = money.MIN_AMOUNT,
    high: int = money.MAX_AMOUNT,
    help_text: str = "Satang.",
    *,
    allow_null: bool = False,
) -> Satang:
    return Satang(min_value=low, max_value=high, help_text=help_text, allow_null=allow_null)


class AmountDisplay(PatternField):
    """An amount for people. CSV files leave it out, because they have a column of baht."""


def amount_display() -> AmountDisplay:
    shape = {"pattern": rf"^-?\d{{1,3}}(,\d{{3}})*\.\d{{2}} {money.CURRENCY}$"}
    return AmountDisplay(shape, help_text="The amount in baht, for people: 1,500.00 THB.")


def metadata(**kwargs: Any) -> serializers.DictField:
    return serializers.DictField(help_text="The metadata of the request, unchanged.", **kwargs)


class Page(serializers.Serializer[Any]):
    """The fields of every list beside its rows."""

    total = serializers.IntegerField(min_value=0, help_text="The number of all results.")
    limit = serializers.IntegerField(min_value=1, max_value=paging.MAX_LIMIT)
    offset = serializers.IntegerField(min_value=0, max_value=paging.MAX_OFFSET)


class CursorPage(Page):
    """The fields of a list that can also be read from a row on."""

    offset = serializers.IntegerField(
        min_value=0, max_value=paging.MAX_OFFSET, required=False, help_text="Absent with `after` or `before`."
    )
