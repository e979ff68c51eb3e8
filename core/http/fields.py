"""Strict fields for request bodies and queries. They convert nothing: `"100"` and `true` are no integers.

Their messages complete a sentence that begins with the name of the field.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from functools import cache
from typing import Any, ClassVar
from zoneinfo import ZoneInfo, available_timezones

import orjson
from django.utils.translation import gettext_lazy as _
from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.fields import empty

from core import clock, dates, money
from core.http import received
from core.http.strict_json import MAX_DEPTH, OtherNumber

LARGEST = 2**63 - 1
"""The largest integer of a field without a limit of its own."""
METADATA_KEYS = 50
METADATA_BYTES = 8_192
METADATA_QUERY_KEYS = 5
# The Unicode property Bidi_Control: such characters can make "evil" look like "live" (CVE-2021-42574).
BIDI_CONTROL = re.compile("[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_MILLISECOND = timedelta(milliseconds=1)
_NUMBER = re.compile(r"-?\d{1,18}", re.ASCII)


# Of texts without such characters and without U+0000, in the OpenAPI document.
PLAIN_TEXT = {"type": "string", "pattern": "^[^\\u0000\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069]*$"}
REQUIRED: dict[str, Any] = {"required": _("is required")}
OBJECT: dict[str, Any] = {**REQUIRED, **dict.fromkeys(("invalid", "null"), "must be a JSON object")}
"""Messages of a serializer that is a field."""


class _Strict:
    """The message that all fields of this module have, and no others."""

    default_error_messages: ClassVar[dict[str, Any]] = REQUIRED


@dataclass(frozen=True, slots=True)
class Fault:
    """The first thing that is wrong in a request.

    name: the field. reason: the rule that it breaks, with the path in the field. received: see `received`.
    """

    name: str
    reason: str
    received: str


def first_fault(
    error: serializers.ValidationError, serializer: serializers.Serializer[Any], data: Any
) -> Fault:
    """The fault of a validation of `data`, which is an object."""
    if not isinstance(error.detail, Mapping):
        raise TypeError(f"an error of no field: {error.detail}")
    name, reason = next(iter(error.detail.items()))
    field, path = serializer.fields[str(name)], ""
    value = field.get_value(data)
    while isinstance(reason, Mapping):
        inner, reason = next(iter(reason.items()))
        if inner in getattr(field, "fields", {}):
            field = field.fields[inner]  # type: ignore[attr-defined]
            value, path = value.get(inner, empty), inner
        elif isinstance(field, serializers.ListField):
            field, value = field.child, value[inner]
    text = str(reason[0] if isinstance(reason, list) else reason)
    shown = received.describe(value, is_shown=getattr(field, "is_shown", True))
    return Fault(str(name), f"{path} {text}", f"{path}: {shown}") if path else Fault(str(name), text, shown)


def without_nulls(serializer: serializers.Serializer[Any], data: Any) -> Any:
    """The body without optional fields that are null: it means omitted, except where a field allows it."""
    if None not in data.values():
        return data
    kept = {name for name, field in serializer.fields.items() if field.required or field.allow_null}
    return {name: value for name, value in data.items() if value is not None or name in kept}


class Integer(_Strict, serializers.IntegerField):
    """A JSON integer, also if it is written with a fraction of zero or an exponent. `unit` is for errors."""

    def __init__(self, *, unit: str = "", **kwargs: Any) -> None:
        of_unit = f" number of {unit}" if unit else ""
        low, high = kwargs.get("min_value"), kwargs.get("max_value")
        limits = f"is out of range: {low} to {high} {unit}".rstrip()
        messages: dict[str, Any] = {
            **dict.fromkeys(("invalid", "null"), f"must be an integer{of_unit}"),
            "max_value": limits if high != LARGEST else "must have at most 64 bits",
            "min_value": limits if high != LARGEST else f"must be at least {low} {unit}".rstrip(),
        }
        super().__init__(error_messages=messages, **kwargs)

    def to_internal_value(self, data: Any) -> int:
        is_whole = type(data) is float and data.is_integer()  # from JSON, so it is exactly this number
        if type(data) is not int and not is_whole:
            self.fail("max_value" if type(data) is OtherNumber and data.is_integer else "invalid")
        return int(data)


class Amount(Integer):
    """Satang. A decimal point or an exponent is refused: a client that sends 1500.0 means baht."""

    default_error_messages = {
        "written": "must have no decimal point and no exponent, because it is in satang: "
        "1,500.00 THB is 150000"
    }

    def __init__(
        self, *, min_value: int = money.MIN_AMOUNT, max_value: int = money.MAX_AMOUNT, **kwargs: Any
    ) -> None:
        text = "Satang, in digits only: 150000 is 1,500.00 THB. `1500.00` is refused."
        kwargs.setdefault("help_text", text)
        super().__init__(unit="satang", min_value=min_value, max_value=max_value, **kwargs)

    def to_internal_value(self, data: Any) -> int:
        if type(data) is float or (type(data) is OtherNumber and not data.is_plain):
            self.fail("written")
        return super().to_internal_value(data)


@extend_schema_field({"type": "string", "minLength": 1, **PLAIN_TEXT})
class Text(_Strict, serializers.CharField):
    """A JSON string, unchanged or as `plain` returns it. Characters that reorder the text are refused."""

    default_error_messages = {
        "invalid": _("must be a string"),
        "null": _("must be a string"),
        "blank": _("must not be empty"),
        "max_length": _("must have at most {max_length} characters"),
        "min_length": _("must have at least {min_length} characters"),
        "bidi": _("must not contain bidirectional control characters"),
    }

    def __init__(
        self, *, is_shown: bool = False, plain: Callable[[str], str] | None = None, **kwargs: Any
    ) -> None:
        """is_shown: errors repeat the value. Not for personal data and secrets.

        plain: a function of `core.plain_text`. The rules judge what it returns.
        """
        self.is_shown, self._plain = is_shown, plain
        kwargs.setdefault("trim_whitespace", False)
        super().__init__(**kwargs)

    def run_validation(self, data: Any = empty) -> Any:
        return super().run_validation(self.cleaned(data))

    def cleaned(self, data: Any) -> Any:
        """`data` as `plain` returns it. What is refused anyway stays as it is."""
        if self._plain and type(data) is str and (data.isascii() or not BIDI_CONTROL.search(data)):
            return self._plain(data)
        return data

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str):
            self.fail("invalid")
        if not data.isascii() and BIDI_CONTROL.search(data):
            self.fail("bidi")
        return data


class Choice(_Strict, serializers.ChoiceField):
    """One of the given strings. The error names them."""

    def __init__(self, choices: Any, **kwargs: Any) -> None:
        names = [str(each[0]) if isinstance(each, tuple) else str(each) for each in choices]
        rule = f"must be {'one of ' if len(names) > 1 else ''}{', '.join(names)}"
        messages: dict[str, Any] = dict.fromkeys(("invalid_choice", "null"), rule)
        super().__init__(choices, error_messages=messages, **kwargs)

    def to_internal_value(self, data: Any) -> str:
        if not isinstance(data, str) or data not in self.choices:
            self.fail("invalid_choice")
        return data


class Choices(_Strict, serializers.ListField):
    """A list of the given strings."""

    default_error_messages = {
        "not_a_list": "must be a list",
        "null": "must be a list",
        "min_length": "must have at least {min_length} item",
        "max_length": "must have at most {max_length} items",
    }

    def __init__(self, choices: Any, **kwargs: Any) -> None:
        super().__init__(child=Choice(choices), **kwargs)


@extend_schema_field({"type": "object", "maxProperties": METADATA_KEYS, "additionalProperties": True})
class Metadata(_Strict, serializers.DictField):
    """A free-form JSON object: at most 50 keys and 8 kB."""

    default_error_messages = {
        "not_a_dict": "must be a JSON object",
        "null": "must be a JSON object",
        "keys": "must have at most {most} keys, but has {has}",
        "bytes": "must have at most {most} bytes as JSON in UTF-8, but has {has}",
        "number": "must not contain a number beyond 64 bits",
    }

    def __init__(self, **kwargs: Any) -> None:
        kwargs.setdefault(
            "help_text",
            f"Any JSON object, returned in responses and webhooks: at most {METADATA_KEYS} keys, "
            f"{METADATA_BYTES:,} bytes as JSON in UTF-8, and {MAX_DEPTH} levels with that of the body.",
        )
        super().__init__(**kwargs)

    def to_internal_value(self, data: Any) -> dict[str, Any]:
        if not isinstance(data, dict):
            self.fail("not_a_dict")
        if len(data) > METADATA_KEYS:
            self.fail("keys", most=METADATA_KEYS, has=len(data))
        try:
            encoded = orjson.dumps(data, default=self._nearest_float)
        except orjson.JSONEncodeError:
            self.fail("number")
        if len(encoded) > METADATA_BYTES:
            self.fail("bytes", most=METADATA_BYTES, has=len(encoded))
        metadata: dict[str, Any] = orjson.loads(encoded)
        return metadata

    @staticmethod
    def _nearest_float(number: OtherNumber) -> float:
        """Only of a number that has a fraction or an exponent."""
        if number.is_plain or math.isinf(float(number)):
            raise TypeError
        return float(number)


class QueryInteger(_Strict, serializers.IntegerField):
    """A decimal integer in a query string; out of range is refused, never clamped."""

    def __init__(self, **kwargs: Any) -> None:
        # With commas, because errors mask the digits of long numbers.
        rule = f"must be an integer from {kwargs['min_value']} to {kwargs['max_value']:,}"
        messages: dict[str, Any] = dict.fromkeys(("invalid", "max_value", "min_value"), rule)
        super().__init__(error_messages=messages, **kwargs)

    def to_internal_value(self, data: Any) -> int:
        if not _NUMBER.fullmatch(str(data)):
            self.fail("invalid")
        return int(data)


@extend_schema_field(
    {
        "type": "object",
        "minProperties": 1,
        "maxProperties": METADATA_QUERY_KEYS,
        "propertyNames": PLAIN_TEXT,
        "additionalProperties": PLAIN_TEXT,
    }
)
class QueryMetadata(_Strict, serializers.Field[Any, Any, Any, Any]):
    """Values by key, from parameters such as `metadata[table]=4`."""

    is_shown = False

    default_error_messages = {
        "too_many": "must have at most {most} keys",
        "name": "must name a key, as in metadata[table]=4",
    }

    def get_value(self, dictionary: Any) -> Any:
        """Collect the parameters that begin with the name of this field."""
        start = f"{self.field_name}["
        found = {name: dictionary[name] for name in dictionary if name.startswith(start)}
        if self.field_name in dictionary:
            found[str(self.field_name)] = dictionary[self.field_name]
        return found or empty

    def to_internal_value(self, data: Any) -> dict[str, str]:
        if len(data) > METADATA_QUERY_KEYS:
            self.fail("too_many", most=METADATA_QUERY_KEYS)
        start = f"{self.field_name}["
        if not all(name.startswith(start) and name.endswith("]") for name in data):
            self.fail("name")
        return {name.removeprefix(start)[:-1]: value for name, value in data.items()}


_timezones = cache(available_timezones)


@extend_schema_field(
    {"type": "string", "pattern": "^[A-Za-z][0-9A-Za-z_+/-]{1,40}$", "examples": ["Asia/Bangkok"]}
)
class QueryTimezone(_Strict, serializers.Field[Any, Any, Any, Any]):
    """The IANA name of a time zone, such as `Asia/Bangkok`."""

    default_error_messages = {"zone": "must be the name of a time zone, such as Asia/Bangkok"}

    def to_internal_value(self, data: Any) -> ZoneInfo:
        # Other texts could name files, so they never reach `ZoneInfo`.
        if data not in _timezones():
            self.fail("zone")
        return ZoneInfo(str(data))


@extend_schema_field(
    {"anyOf": [{"type": "string", "format": "date"}, {"type": "string", "format": "date-time"}]}
)
class QueryInstant(_Strict, serializers.Field[Any, Any, Any, Any]):
    """An ISO 8601 date (a UTC day, in a `ZonedQuery` a day of its `timezone`) or an instant.

    `end=True` makes it the exclusive upper bound: the day after a date, the millisecond after an instant,
    so that both are inclusive for the caller.
    """

    default_error_messages = {
        **dict.fromkeys(("date", "null"), "must be a date (2026-11-21) or a time (2026-11-21T10:00:00Z)"),
        "buddhist": _("must be in the Gregorian calendar: {reason}"),
    }

    def __init__(self, *, end: bool = False, **kwargs: Any) -> None:
        self.end = end
        super().__init__(**kwargs)

    def to_internal_value(self, data: Any) -> datetime:
        return self.bound(str(data), UTC)

    def bound(self, text: str, zone: tzinfo) -> datetime:
        """The instant that the text means as a bound. A date is a day of `zone`."""
        try:
            if dates.is_day(text):
                return (dates.end_of if self.end else dates.midnight)(dates.day(text), zone)
            at = dates.instant(text)
        except dates.BuddhistYear as reason:
            self.fail("buddhist", reason=reason)
        except ValueError:
            self.fail("date")
        last = dates.END - _MILLISECOND
        return clock.to_millisecond(at) + _MILLISECOND if self.end and at < last else at


@extend_schema_field({"type": "string", "format": "date-time"})
class Instant(QueryInstant):
    """An ISO 8601 time, as a JSON string."""

    default_error_messages = {"date": "must be a time (2026-11-21T10:00:00Z)"}

    def to_internal_value(self, data: Any) -> Any:
        if not isinstance(data, str) or dates.is_day(data):
            self.fail("date")
        return clock.to_millisecond(super().to_internal_value(data))
