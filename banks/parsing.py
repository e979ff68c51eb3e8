"""Parse what messages of Thai banks have in common: amounts in baht, times in Bangkok, optional fields.

Every function raises ValueError for a malformed value.
"""

import json
import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal, InvalidOperation
from typing import Any

from core import clock, money
from core.clock import BANGKOK
from core.http import strict_json
from core.http.strict_json import JsonRefused

# The bank's clock may differ from ours by this much: money paid after midnight may be booked a day before.
CLOCK_TOLERANCE = timedelta(minutes=5)
MAX_DAYS = 31
# Years of the Buddhist era, which are 543 higher, are outside.
YEARS = range(2000, 2200)
BUDDHIST_ERA = 543
MAX_NAME_LENGTH = 140
NAME_PATTERN = f"[^\x00-\x1f\x7f-\x9f]{{0,{MAX_NAME_LENGTH}}}"  # a name without control characters
_MAX_AMOUNT_LENGTH = 13
_ONE_DECIMAL = re.compile(r"[0-9]+\.[0-9]")


def parse_json(body: bytes) -> dict[str, Any]:
    """The object in `body`, checked by core.http.strict_json, with fractions as Decimal."""
    try:
        strict_json.loads(body)
        data: dict[str, Any] = json.loads(body, parse_float=Decimal)
    except JsonRefused as error:
        raise ValueError(str(error)) from None
    except InvalidOperation:
        raise ValueError("a number is out of range") from None
    return data


def parse_amount(amount: object) -> int:
    """Satang of an amount in baht, which banks send as text or as a number."""
    if isinstance(amount, bool) or not isinstance(amount, str | int | Decimal):
        raise ValueError("amount is missing or malformed")
    # Use the exponent form: the digits of a short text such as 1e-999999999 would fill the memory.
    text = str(amount)
    if len(text) > _MAX_AMOUNT_LENGTH:
        raise ValueError("amount is too long")
    satang = money.satang(text + "0" if _ONE_DECIMAL.fullmatch(text) else text)
    if satang < 1:
        raise ValueError("the amount is zero")
    return satang


def parse_instant(text: str) -> datetime:
    """UTC, to the millisecond, of an ISO time with an offset."""
    at = datetime.fromisoformat(text)
    if at.tzinfo is None:
        raise ValueError("the time has no offset")
    if at.year not in YEARS:
        raise ValueError(f"the year is not in {YEARS.start} to {YEARS.stop - 1}")
    return clock.to_millisecond(at.astimezone(UTC))


def optional_text(data: Mapping[str, Any], name: str, pattern: str) -> str:
    """A text that may be missing; "" if it does not match.

    For fields that are only useful: an unreadable payer's name must not stop money.
    """
    value = data.get(name)
    return value if isinstance(value, str) and re.fullmatch(pattern, value) else ""


def optional_reference(data: Mapping[str, Any], name: str) -> str:
    """A reference that may be missing, but must not be malformed."""
    value = data.get(name) or ""
    if not isinstance(value, str) or not re.fullmatch("[ -~]{0,20}", value):
        raise ValueError(f"{name} is malformed")
    return value


def matching_texts(data: Mapping[str, Any], patterns: Mapping[str, re.Pattern[str]]) -> dict[str, str]:
    """The fields of `patterns`, each a text that matches as a whole. The error names the field."""
    texts = {}
    for name, pattern in patterns.items():
        value = data.get(name)
        if not isinstance(value, str) or not pattern.fullmatch(value):
            raise ValueError(f"{name} is missing or malformed")
        texts[name] = value
    return texts


def bangkok_days(starts_at: datetime, ends_at: datetime) -> list[date]:
    """The days in Bangkok on which money of that time can be booked, in order."""
    first = (starts_at - CLOCK_TOLERANCE).astimezone(BANGKOK).date()
    last = (ends_at + CLOCK_TOLERANCE).astimezone(BANGKOK).date()
    count = (last - first).days + 1
    if not 1 <= count <= MAX_DAYS:
        raise ValueError(f"the time range is negative or longer than {MAX_DAYS} days")
    return [first + timedelta(days=day) for day in range(count)]
