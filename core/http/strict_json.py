"""A strict JSON parser for request bodies: it accepts only what all parsers read in the same way.

It refuses duplicate keys, NaN and infinities, integers beyond 64 bit, U+0000 and lone surrogates, nesting
over 32 levels, and everything that is not an object. RFC 8259 lets parsers differ in these. In a
body of the API, a number that does not fit is an `OtherNumber`, so that the error names its field.
"""

import json
import math
from decimal import Decimal, InvalidOperation
from typing import Any, NoReturn

MAX_DEPTH = 32
_INT64 = range(-(2**63), 2**63)
_LONGEST_INT = 20
TOO_DEEP = f"the body is nested deeper than {MAX_DEPTH} levels"


class JsonRefused(ValueError):
    """The text is not strict JSON. The reason completes "The request is not valid: ..."."""


class OtherNumber:
    """A JSON number that neither an integer of 64 bits nor a binary float holds exactly enough.

    Not a dataclass, which orjson would write as an object.
    """

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    @property
    def is_plain(self) -> bool:
        """Whether it is written as digits, without a decimal point or an exponent."""
        return self.text.removeprefix("-").isdigit()

    @property
    def is_integer(self) -> bool:
        """Whether it is an integer, read as a decimal number: 1e400 is, 99.999999999999999999 is not."""
        try:
            number = Decimal(self.text)
        except InvalidOperation:  # its exponent is beyond those of Decimal
            return "e-" not in self.text.lower()
        return number == number.to_integral_value()

    def __float__(self) -> float:
        return float(self.text)


def loads(raw: bytes, *, is_body: bool = False) -> dict[str, Any]:
    """The object in `raw`. In a body, a number that does not fit is an OtherNumber. Raises JsonRefused."""
    try:
        value = (_BODY_DECODER if is_body else _DECODER).decode(raw.decode("utf-8"))
    except UnicodeDecodeError:
        raise JsonRefused("the body is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise JsonRefused(f"the body is not JSON at character {error.pos + 1}") from None
    except RecursionError:
        raise JsonRefused(TOO_DEEP) from None
    if not isinstance(value, dict):
        raise JsonRefused("the body is not a JSON object")
    # Only an escape can contain U+0000 or half a surrogate pair.
    if b"\\u" in raw or raw.count(b"[") + raw.count(b"{") > MAX_DEPTH:
        _check(value, 1)
    return value


def _check(value: object, depth: int) -> None:
    if isinstance(value, str):
        if "\x00" in value or any("\ud800" <= c <= "\udfff" for c in value):
            raise JsonRefused("the body has a string with U+0000 or half of a surrogate pair")
    elif isinstance(value, dict | list):
        if depth > MAX_DEPTH:
            raise JsonRefused(TOO_DEEP)
        for item in (*value, *value.values()) if isinstance(value, dict) else value:
            _check(item, depth + 1)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    instance = dict(pairs)
    if len(instance) != len(pairs):
        raise JsonRefused("the body has an object with the same key twice")
    return instance


def _body_integer(text: str) -> int | OtherNumber:
    if len(text) <= _LONGEST_INT and (number := int(text)) in _INT64:
        return number
    return OtherNumber(text)


def _body_number(text: str) -> float | OtherNumber:
    """The float, unless it is infinite, or an integer that the decimal number is not."""
    number = float(text)
    if not number.is_integer():
        return number if math.isfinite(number) else OtherNumber(text)
    other = OtherNumber(text)
    is_same = other.is_integer and (not number or Decimal(text) == Decimal(number))
    return number if is_same else other


def _integer(text: str) -> int:
    number = _body_integer(text)
    if isinstance(number, OtherNumber):
        raise JsonRefused("the body has an integer beyond 64 bits")
    return number


def _number(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise JsonRefused("the body has a number beyond 64 bits")
    return number


def _constant(text: str) -> NoReturn:
    raise JsonRefused(f"{text} is not JSON")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_integer, parse_float=_number, parse_constant=_constant
)
_BODY_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_body_integer, parse_float=_body_number, parse_constant=_constant
)
