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
AROUND_MIDNIGHT = timedelta(minutes=5)
MOST_DAYS = 31
# One of the Buddhist era, 543 ahead, is not among them.
YEARS = range(2000, 2200)
# A name without control characters.
NAME = "[^\x00-\x1f\x7f-\x9f]{0,140}"
_LONGEST_AMOUNT = 13
_ONE_DECIMAL = re.compile(r"[0-9]+\.[0-9]")


def loads(body: bytes) -> dict[str, Any]:
    """The object in `body` as core.strict_json reads it, but its fractions exact. Raises InvalidRequest."""
    strict_json.loads(body)
    try:
        told: dict[str, Any] = json.loads(body, parse_float=Decimal)
    except InvalidOperation:
        raise InvalidRequest("The message holds a number beyond all measure.") from None
    return told


def satang(amount: object) -> int:
    """Satang of an amount in baht, which banks send as text or as a number. Raises ValueError."""
    if isinstance(amount, bool) or not isinstance(amount, str | int | Decimal):
        raise ValueError("amount is missing or malformed")
    # Never spelled out: a short text such as 1e-999999999 would fill the memory.
    text = str(amount)
    if len(text) > _LONGEST_AMOUNT:
        raise ValueError("amount is too long")
    found = money.satang(text + "0" if _ONE_DECIMAL.fullmatch(text) else text)
    if found < 1:
        raise ValueError("the amount is zero")
    return found


def instant(text: str) -> datetime:
    """UTC, to the millisecond, of an ISO time with its offset. Raises ValueError, OverflowError."""
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError("a time without its offset")
    if at.year not in YEARS:
        raise ValueError("the year is none of this era")
    return clock.to_millisecond(at.astimezone(UTC))


def optional(told: Mapping[str, Any], name: str, shape: str) -> str:
    """A text that may be left out; "" for one that is no text of this shape.

    For what is good to know: a payer's name that nobody can read does not hold up the money.
    """
    value = told.get(name)
    return value if isinstance(value, str) and re.fullmatch(shape, value) else ""


def reference(told: Mapping[str, Any], name: str) -> str:
    """A reference that may be left out, but is well-formed. Raises ValueError."""
    value = told.get(name) or ""
    if not isinstance(value, str) or not re.fullmatch("[ -~]{0,20}", value):
        raise ValueError(f"{name} is malformed")
    return value


def days(since: datetime, until: datetime) -> list[date]:
    """The days in Bangkok on which money of that time can be booked, the first first. Raises ValueError."""
    first = (since - AROUND_MIDNIGHT).astimezone(BANGKOK).date()
    last = (until + AROUND_MIDNIGHT).astimezone(BANGKOK).date()
    count = (last - first).days + 1
    if not 1 <= count <= MOST_DAYS:
        raise ValueError("no such time, or too long a time")
    return [first + timedelta(days=day) for day in range(count)]


def number_of_days(since: datetime, until: datetime) -> int:
    """How many days `days` gives; one where it refuses."""
    try:
        return len(days(since, until))
    except ValueError:
        return 1
