"""Public identifiers: a type prefix and 27 base62 characters that sort by creation time."""

import re
import secrets
from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from core.errors import NotFound

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
BODY_LENGTH = 27  # 62**27 > 2**160: 32 bits of seconds, 128 bits of chance
MAX_LENGTH = 31  # the longest prefix is four characters
EPOCH = 1_700_000_000  # 2023-11-14: the seconds last until 2159
_RANDOM_BITS = 128
_PAIRS = [a + b for a in ALPHABET for b in ALPHABET]
_SHAPE = re.compile(r"[a-z]{2,3}_[0-9A-Za-z]{27}", re.ASCII)
T = TypeVar("T")


def new(prefix: str, at: datetime) -> str:
    """A new id such as `pay_...`. Ids of a later second sort later."""
    return prefix + _base62(_seconds(at) << _RANDOM_BITS | secrets.randbits(_RANDOM_BITS))


def first(prefix: str, at: datetime) -> str:
    """The smallest id of the second of `at`: ids of earlier seconds sort before it."""
    return prefix + _base62(_seconds(at) << _RANDOM_BITS)


def looks_right(value: object, prefix: str) -> bool:
    """Whether `value` has the form of an id with this prefix. Other values need no query."""
    return isinstance(value, str) and value.startswith(prefix) and _SHAPE.fullmatch(value) is not None


def or_none(value: str, prefix: str) -> str | None:
    """`value` if it has the form of an id with this prefix. PostgreSQL would refuse some other texts."""
    return value if looks_right(value, prefix) else None


def find(value: str, prefix: str, query: Callable[[], T | None], not_found: type[NotFound]) -> T:
    """Return the row that `query` finds by the id `value`. Raises `not_found`."""
    found = query() if looks_right(value, prefix) else None
    if found is None:
        raise not_found(id=value)
    return found


def random_text(length: int, alphabet: str = ALPHABET) -> str:
    """`length` unguessable characters of `alphabet`."""
    # One random number for the whole text; one for each character would cost ten times as much.
    number, characters = secrets.randbelow(len(alphabet) ** length), []
    for _ in range(length):
        number, rest = divmod(number, len(alphabet))
        characters.append(alphabet[rest])
    return "".join(characters)


def _seconds(at: datetime) -> int:
    return min(max(0, int(at.timestamp()) - EPOCH), 2**32 - 1)


def _base62(number: int) -> str:
    # Two digits in each step halve the time of this hot path.
    pairs = []
    for _ in range(14):
        number, rest = divmod(number, 3844)
        pairs.append(_PAIRS[rest])
    return "".join(reversed(pairs))[1:]
