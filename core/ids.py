"""Public identifiers: a type prefix and 27 base62 characters that sort by creation time."""

import os
import re
import secrets
from collections.abc import Callable
from datetime import datetime
from functools import lru_cache
from itertools import product
from typing import TypeVar

from django.db.models import Model, QuerySet

from core.errors import NotFound

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
BODY_LENGTH = 27
TIME_LENGTH = 5  # the seconds
FRACTION_LENGTH = 2  # of a second: the milliseconds. New ids are the last of an index, so its pages stay full
RANDOM_LENGTH = BODY_LENGTH - TIME_LENGTH - FRACTION_LENGTH
MAX_LENGTH = 31  # the longest prefix is four characters
EPOCH = 1_700_000_000  # 2023-11-14: 62**5 seconds last until 2052
_MAX_SECONDS: int = len(ALPHABET) ** TIME_LENGTH - 1
# A letter for each byte. Some letters have five bytes and others four, so 20 are 113 bits of chance at least.
_LETTERS = (ALPHABET * 5)[:256].encode()
_SHAPE = re.compile(r"[a-z]{2,3}_[0-9A-Za-z]{27}", re.ASCII)
_BEGINNING = re.compile(r"[A-Za-z]{2,3}_[0-9A-Za-z]{3,27}", re.ASCII)
M = TypeVar("M", bound=Model)


def new(prefix: str, at: datetime, random_bytes: Callable[[int], bytes] = os.urandom) -> str:
    """A new id such as `pay_...`. Ids of a later millisecond sort later."""
    return prefix + _time(at) + random_bytes(RANDOM_LENGTH).translate(_LETTERS).decode()


def first(prefix: str, at: datetime) -> str:
    """The smallest id of the instant `at`: ids of earlier milliseconds sort before it."""
    return prefix + _time(at) + ALPHABET[0] * RANDOM_LENGTH


def of_code(payment_id: str) -> str:
    """The id of the code of a payment: the same with another prefix."""
    return f"qr_{payment_id[4:]}"


def of_payment(text: str) -> str:
    """The id of the payment of a code. Other texts stay as they are."""
    return f"pay_{text[3:]}" if looks_right(text, "qr_") else text


def looks_right(value: object, prefix: str) -> bool:
    """Whether `value` has the form of an id with this prefix. Other values need no query."""
    return isinstance(value, str) and value.startswith(prefix) and _SHAPE.fullmatch(value) is not None


def heads(text: str) -> list[str]:
    """Where ids can be that begin with this text in any case: their prefix and time. Empty if none can.

    Few ids have one time, so a search reads these and compares the rest. No index has ids in small letters.
    """
    if not _BEGINNING.fullmatch(text):
        return []
    prefix, _, body = text.partition("_")
    cases = ({each.lower(), each.upper()} for each in body[: TIME_LENGTH + FRACTION_LENGTH])
    return [f"{prefix.lower()}_{''.join(each)}" for each in product(*cases)]


def find(
    value: str,
    prefix: str,
    rows: QuerySet[M],
    not_found: type[NotFound],
    *,
    key: str = "",
    param: str | None = None,
) -> M:
    """The row with the id `value`, or with the key that belongs to it.

    Raises `not_found`, which names the field `param` that had the id.
    """
    found = rows.filter(pk=key or value).first() if looks_right(value, prefix) else None
    if found is None:
        raise not_found(id=value, param=param)
    return found


def random_text(length: int, alphabet: str = ALPHABET) -> str:
    # One random number: one for each character would take ten times as long.
    return written(secrets.randbelow(len(alphabet) ** length), length, alphabet)


def _time(at: datetime) -> str:
    seconds, fraction = min(max(0, int(at.timestamp()) - EPOCH), _MAX_SECONDS), at.microsecond // 1000
    return _written(seconds, TIME_LENGTH, ALPHABET) + _written(fraction, FRACTION_LENGTH, ALPHABET)


def written(number: int, length: int, alphabet: str) -> str:
    """The last `length` digits of a number, with the characters of `alphabet` as digits."""
    digits = []
    for _ in range(length):
        number, rest = divmod(number, len(alphabet))
        digits.append(alphabet[rest])
    return "".join(reversed(digits))


# A second has 1,000 milliseconds, and the clock has no smaller parts.
_written = lru_cache(maxsize=2_048)(written)
