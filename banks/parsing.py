"""What messages of Thai banks have in common: amounts in baht, times and dates in Bangkok, words left out."""

import json
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from core import clock, money, strict_json
from core.clock import BANGKOK
from core.errors import InvalidRequest

# How far the bank's clock and ours may be apart: money of past midnight may be booked a day before.
CLOCK_TOLERANCE = timedelta(minutes=5)
MAX_DAYS = 31
# One of the Buddhist era, 543 ahead, is not among them.
YEARS = range(2000, 2200)
# A name without control characters.
NAME_PATTERN = "[^\x00-\x1f\x7f-\x9f]{0,140}"
_MAX_AMOUNT_LENGTH = 13
_ONE_DECIMAL = re.compile(r"[0-9]+\.[0-9]")


def parse_json(body: bytes) -> dict[str, Any]:
    """The object in `body` as core.strict_json reads it, but its fractions exact. Raises InvalidRequest."""
    strict_json.loads(body)
    try:
        data: dict[str, Any] = json.loads(body, parse_float=Decimal)
    except InvalidOperation:
        raise InvalidRequest("The message holds a number beyond all measure.") from None
    return data


def parse_amount(amount: object) -> int:
    """Satang of an amount in baht, which banks send as text or as a number. Raises ValueError."""
    if isinstance(amount, bool) or not isinstance(amount, str | int | Decimal):
        raise ValueError("amount is missing or malformed")
    # Never spelled out: a short text such as 1e-999999999 would fill the memory.
    text = str(amount)
    if len(text) > _MAX_AMOUNT_LENGTH:
        raise ValueError("amount is too long")
    found = money.satang(text + "0" if _ONE_DECIMAL.fullmatch(text) else text)
    if found < 1:
        raise ValueError("the amount is zero")
    return found


def parse_instant(text: str) -> datetime:
    """UTC, to the millisecond, of an ISO time with its offset. Raises ValueError, OverflowError."""
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError("a time without its offset")
    if at.year not in YEARS:
        raise ValueError("the year is none of this era")
    return clock.to_millisecond(at.astimezone(UTC))


def optional_text(data: Mapping[str, Any], name: str, pattern: str) -> str:
    """A text that may be left out; "" for one that is no text of this shape.

    For what is good to know: a payer's name that nobody can read does not hold up the money.
    """
    value = data.get(name)
    return value if isinstance(value, str) and re.fullmatch(pattern, value) else ""


def optional_reference(data: Mapping[str, Any], name: str) -> str:
    """A reference that may be left out, but is well-formed. Raises ValueError."""
    value = data.get(name) or ""
    if not isinstance(value, str) or not re.fullmatch("[ -~]{0,20}", value):
        raise ValueError(f"{name} is malformed")
    return value


def bangkok_days(starts_at: datetime, deadline: datetime) -> list[date]:
    """The days in Bangkok on which money of that time can be booked, the first first. Raises ValueError."""
    first = (starts_at - CLOCK_TOLERANCE).astimezone(BANGKOK).date()
    last = (deadline + CLOCK_TOLERANCE).astimezone(BANGKOK).date()
    count = (last - first).days + 1
    if not 1 <= count <= MAX_DAYS:
        raise ValueError("no such time, or too long a time")
    return [first + timedelta(days=day) for day in range(count)]


def count_bangkok_days(starts_at: datetime, deadline: datetime) -> int:
    """How many days `bangkok_days` gives; one where it refuses."""
    try:
        return len(bangkok_days(starts_at, deadline))
    except ValueError:
        return 1


def matching_texts(data: Mapping[str, Any], patterns: Mapping[str, re.Pattern[str]]) -> dict[str, str]:
    """Those of `patterns`, each text of that shape as a whole. Raises ValueError, which names the field."""
    return {name: _matching_text(name, data.get(name), pattern) for name, pattern in patterns.items()}


def _matching_text(name: str, value: object, pattern: re.Pattern[str]) -> str:
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise ValueError(f"{name} is missing or malformed")
    return value
