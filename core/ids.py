"""Public identifiers: a type prefix and 27 base62 characters that sort by creation time."""

import re
import secrets
from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from core.errors import NotFound

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
BODY_LENGTH = 27
TIME_LENGTH = 5  # the seconds; the other 22 characters are 130 bits of chance
MAX_LENGTH = 31  # the longest prefix is four characters
EPOCH = 1_700_000_000  # 2023-11-14: 62**5 seconds last until 2052
_MAX_SECONDS: int = len(ALPHABET) ** TIME_LENGTH - 1
_SHAPE = re.compile(r"[a-z]{2,3}_[0-9A-Za-z]{27}", re.ASCII)
T = TypeVar("T")


def new(prefix: str, at: datetime) -> str:
    """A new id such as `pay_...`. Ids of a later second sort later."""
    return prefix + _time(at) + random_text(BODY_LENGTH - TIME_LENGTH)


def first(prefix: str, at: datetime) -> str:
    """The smallest id of the second of `at`: ids of earlier seconds sort before it."""
    return prefix + _time(at) + ALPHABET[0] * (BODY_LENGTH - TIME_LENGTH)


def looks_right(value: object, prefix: str) -> bool:
    """Whether `value` has the form of an id with this prefix. Other values need no query."""
    return isinstance(value, str) and value.startswith(prefix) and _SHAPE.fullmatch(value) is not None


def find(value: str, prefix: str, query: Callable[[], T | None], not_found: type[NotFound]) -> T:
    """Return the row that `query` finds by the id `value`. Raises `not_found`."""
    found = query() if looks_right(value, prefix) else None
    if found is None:
        raise not_found(id=value)
    return found


def random_text(length: int, alphabet: str = ALPHABET) -> str:
    """`length` unguessable characters of `alphabet`."""
    # One random number: one for each character would take ten times as long.
    return written(secrets.randbelow(len(alphabet) ** length), length, alphabet)


def _time(at: datetime) -> str:
    seconds = min(max(0, int(at.timestamp()) - EPOCH), _MAX_SECONDS)
    return written(seconds, TIME_LENGTH, ALPHABET)


def written(number: int, length: int, alphabet: str) -> str:
    """The last `length` digits of a number, with the characters of `alphabet` as digits."""
    digits = []
    for _ in range(length):
        number, rest = divmod(number, len(alphabet))
        digits.append(alphabet[rest])
    return "".join(reversed(digits))
