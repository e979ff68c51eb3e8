"""Public identifiers: a type prefix and 27 base62 characters that sort by creation time."""

import os
import re
import threading
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import TypeVar

from core.errors import NotFound

ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
BODY_LENGTH = 27
TIME_LENGTH = 5  # the seconds; the other 22 characters are 130 bits of chance
MAX_LENGTH = 31  # the longest prefix is four characters
EPOCH = 1_700_000_000  # 2023-11-14: 62**5 seconds last until 2052
READ_AHEAD = 512  # random bytes: those of about ten ids
_MAX_SECONDS: int = len(ALPHABET) ** TIME_LENGTH - 1
_SHAPE = re.compile(r"[a-z]{2,3}_[0-9A-Za-z]{27}", re.ASCII)
T = TypeVar("T")


def new(prefix: str, at: datetime) -> str:
    """A new id such as `pay_...`. Ids of a later second sort later."""
    return prefix + _time(_seconds(at)) + random_text(BODY_LENGTH - TIME_LENGTH)


def new_together(prefix: str, times: Sequence[datetime]) -> list[str]:
    """A new id for each time. Together they take a third of the time."""
    length = BODY_LENGTH - TIME_LENGTH
    chance = random_text(length * len(times))
    return [
        prefix + _time(_seconds(at)) + chance[number * length : (number + 1) * length]
        for number, at in enumerate(times)
    ]


def first(prefix: str, at: datetime) -> str:
    """The smallest id of the second of `at`: ids of earlier seconds sort before it."""
    return prefix + _time(_seconds(at)) + ALPHABET[0] * (BODY_LENGTH - TIME_LENGTH)


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
    """`length` unguessable characters of `alphabet`, which is ASCII."""
    # Bytes beyond the last whole multiple of the alphabet are dropped, so that all characters are as likely.
    # This takes a tenth of the time of a random number for each character.
    table, dropped = _tables(alphabet)
    text = b""
    while len(text) < length:
        text += _randomness.take(2 * length).translate(table, dropped)
    return text[:length].decode()


class _Randomness(threading.local):
    """Random bytes of the system, read ahead by each thread.

    A system call releases the interpreter lock, and under load a thread waits to get it back. Each byte is
    used once. A fork reads bytes of its own, because it begins with those of its parent.
    """

    _bytes, _used, _process = b"", 0, 0

    def take(self, number: int) -> bytes:
        end = self._used + number
        if end > len(self._bytes) or self._process != os.getpid():
            self._bytes, self._used, end = os.urandom(READ_AHEAD + number), 0, number
            self._process = os.getpid()
        taken, self._used = self._bytes[self._used : end], end
        return taken


_randomness = _Randomness()


@lru_cache
def _tables(alphabet: str) -> tuple[bytes, bytes]:
    """The character for each byte, and the bytes to drop."""
    repeated = alphabet.encode() * (256 // len(alphabet))
    return repeated.ljust(256), bytes(range(len(repeated), 256))


def _seconds(at: datetime) -> int:
    return min(max(0, int(at.timestamp()) - EPOCH), _MAX_SECONDS)


@lru_cache(maxsize=8)
def _time(seconds: int) -> str:
    return written(seconds, TIME_LENGTH, ALPHABET)


def written(number: int, length: int, alphabet: str) -> str:
    """The last `length` digits of a number, with the characters of `alphabet` as digits."""
    digits = []
    for _ in range(length):
        number, rest = divmod(number, len(alphabet))
        digits.append(alphabet[rest])
    return "".join(reversed(digits))
