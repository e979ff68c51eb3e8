"""The format of a secret key: `tq_<mode>_` + 8 public + 32 secret + 6 checksum characters, all base62.

Secret scanners recognise our prefix. With the checksum they, and we, recognise a key without a query.
"""

import hashlib
import re
import zlib

from core import ids

PUBLIC_LENGTH, SECRET_LENGTH, CHECKSUM_LENGTH = 8, 32, 6
_SHAPE = re.compile(r"tq_(?:test|live)_[0-9A-Za-z]{46}", re.ASCII)


def generate(mode: str) -> str:
    """A fresh secret key for `mode` (`test` or `live`)."""
    start = f"tq_{mode}_" + ids.random_text(PUBLIC_LENGTH + SECRET_LENGTH)
    return start + checksum(start)


def public_id(key: str) -> str:
    """The part that may be shown and logged."""
    return key[8 : 8 + PUBLIC_LENGTH]


def is_well_formed(key: str) -> bool:
    """Whether format and checksum are right. Other texts need no query."""
    return _SHAPE.fullmatch(key) is not None and key[-CHECKSUM_LENGTH:] == checksum(key[:-CHECKSUM_LENGTH])


def digest(key: str) -> bytes:
    """The stored hash. 190 random bits need no slow hash."""
    return hashlib.sha256(key.encode()).digest()


def checksum(text: str) -> str:
    """CRC-32 in base62, six characters."""
    number, digits = zlib.crc32(text.encode()), ""
    for _ in range(CHECKSUM_LENGTH):
        number, rest = divmod(number, 62)
        digits = ids.ALPHABET[rest] + digits
    return digits
