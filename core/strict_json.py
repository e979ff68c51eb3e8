"""A strict JSON parser for request bodies: it accepts only what all parsers read in the same way.

It refuses duplicate keys, NaN and infinities, integers beyond 64 bit, U+0000 and lone surrogates, nesting
over 32 levels, and everything that is not an object. RFC 8259 lets parsers differ in these.
"""

import json
import math
from typing import Any, NoReturn

from core.errors import InvalidRequest

MAX_DEPTH = 32
_INT64 = range(-(2**63), 2**63)
_LONGEST_INT = 20


def loads(raw: bytes) -> dict[str, Any]:
    """The object in `raw`. Raises InvalidRequest with the reason."""
    _check_depth(raw)
    try:
        value = _DECODER.decode(raw.decode("utf-8"))
    except UnicodeDecodeError:
        raise InvalidRequest("The request body is not UTF-8.") from None
    except json.JSONDecodeError as error:
        raise InvalidRequest(
            f"The request body is not valid JSON: {error.msg} at character {error.pos}."
        ) from None
    if not isinstance(value, dict):
        raise InvalidRequest("The request body must be a JSON object.")
    if b"\\u" in raw:  # only an escape can contain U+0000 or half a surrogate pair
        _check_text(value)
    return value


def _check_depth(raw: bytes) -> None:
    if raw.count(b"[") + raw.count(b"{") <= MAX_DEPTH:
        return
    depth, in_string, escaped = 0, False, False
    for byte in raw:
        if in_string:
            in_string, escaped = escaped or byte != 0x22, not escaped and byte == 0x5C
        elif byte == 0x22:
            in_string = True
        elif byte in b"[{":
            depth += 1
            if depth > MAX_DEPTH:
                raise InvalidRequest(f"The request body is nested deeper than {MAX_DEPTH} levels.")
        elif byte in b"]}":
            depth -= 1


def _check_text(value: object) -> None:
    if isinstance(value, str):
        if "\x00" in value or any("\ud800" <= c <= "\udfff" for c in value):
            raise InvalidRequest("Text must not contain U+0000 or half of a surrogate pair.")
    elif isinstance(value, dict):
        for key, item in value.items():
            _check_text(key)
            _check_text(item)
    elif isinstance(value, list):
        for item in value:
            _check_text(item)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    instance = dict(pairs)
    if len(instance) != len(pairs):
        raise InvalidRequest("The request body names a key twice.")
    return instance


def _integer(text: str) -> int:
    if len(text) > _LONGEST_INT or (number := int(text)) not in _INT64:
        raise InvalidRequest("The request body contains an integer beyond 64 bits.")
    return number


def _number(text: str) -> float:
    if not math.isfinite(number := float(text)):
        raise InvalidRequest("The request body contains a number that is too large.")
    return number


def _constant(text: str) -> NoReturn:
    raise InvalidRequest(f"{text} is not JSON.")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_integer, parse_float=_number, parse_constant=_constant
)
