"""The received value in messages of errors: short, in one line, and without personal data."""

import json
import re
from typing import Any

from core.errors import NOTHING
from core.http.strict_json import OtherNumber

MAX_LENGTH = 40
_ACCOUNT_NUMBER = re.compile("[0-9]{10}")
_KINDS = {str: "a string of {} characters", list: "an array of {} items", dict: "an object of {} fields"}


def describe(value: Any, *, is_shown: bool) -> str:
    """The value as JSON, or its kind and length if it is long or may be personal (`is_shown` is false)."""
    if value is None or isinstance(value, bool):
        return json.dumps(value)
    if isinstance(value, int | float | OtherNumber):
        if not is_shown:
            return "a number"
        text = value.text if isinstance(value, OtherNumber) else json.dumps(value)
        is_long = len(text) > MAX_LENGTH or _ACCOUNT_NUMBER.search(text)
        return f"a number of {len(text)} characters" if is_long else text
    kind = next((text for type_, text in _KINDS.items() if isinstance(value, type_)), None)
    if kind is None:
        return NOTHING
    if is_shown and isinstance(value, str) and len(value) <= MAX_LENGTH:
        return json.dumps(value, ensure_ascii=not value.isprintable())
    return kind.format(len(value))
