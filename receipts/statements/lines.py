"""What all formats have in common: lines as bytes, what a line says, and what makes it that line."""

import codecs
import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import cached_property
from typing import BinaryIO

from banks.base import Kind, Unreadable
from banks.reading import YEARS
from core.clock import BANGKOK

LONGEST = 4_096
"""Bytes of a line. Of a longer one, which no format has, only so much is kept."""
COMPLAINTS_AT_MOST = 20
_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f]")


class NotAStatement(Exception):
    """The file is in no format that is known: nothing of it is kept."""


@dataclass(frozen=True, slots=True)
class Line:
    """One movement of money. amount: satang, at least 1. paid_at: in UTC, to the second."""

    kind: Kind
    biller_id: str
    reference1: str
    reference2: str
    reference3: str
    amount: int
    paid_at: datetime
    payer_name: str
    payer_bank_code: str

    @property
    def digest(self) -> str:
        """What makes it this line in every export and in every format, which tell of payers differently."""
        told = (self.kind, self.biller_id, self.reference1, self.reference2, self.reference3)
        return digest_of("\x1f".join([*told, str(self.amount), self.paid_at.isoformat()]).encode())


@dataclass(frozen=True)
class Row:
    """A line of a file, byte for byte, and what it says; or, where `line` is None, why nobody can tell.

    content: what is the same in every export of a line that nobody can read.
    """

    number: int
    raw: bytes
    line: Line | None
    content: bytes = b""
    why: str = ""

    @cached_property
    def digest(self) -> str:
        """SHA-256, in hex."""
        return self.line.digest if self.line else digest_of(self.content)

    @property
    def account(self) -> str:
        """The biller id, by which every format knows whose money it is."""
        return self.line.biller_id if self.line else ""

    @property
    def day(self) -> date | None:
        return self.line.paid_at.astimezone(BANGKOK).date() if self.line else None


@dataclass(slots=True)
class Complaints:
    """What is wrong with a file as a whole, in sentences; of very many only the first are kept."""

    said: list[str] = field(default_factory=list)
    left_out: int = 0

    def add(self, sentence: str) -> None:
        if len(self.said) < COMPLAINTS_AT_MOST:
            self.said.append(sentence)
        else:
            self.left_out += 1

    def __iter__(self) -> Iterator[str]:
        yield from self.said
        if self.left_out:
            yield f"And {self.left_out} more of the kind."


def numbered(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, without their ends, and their numbers from 1.

    One that is too long is cut after `LONGEST` + 1 bytes, by which formats know it.
    """
    number, start = 0, codecs.BOM_UTF8
    while chunk := file.readline(LONGEST + 1):
        number += 1
        line, start = chunk.removeprefix(start).rstrip(b"\r\n"), b""
        if len(chunk) > LONGEST and not chunk.endswith(b"\n"):
            _skip_rest(file)
        if line.strip(b" \t\x1a"):  # old systems end a file with Ctrl-Z
            yield number, line


def digest_of(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def text(raw: str, what: str, longest: int) -> str:
    """Text without the blanks around it. Raises Unreadable."""
    found = raw.strip()
    if len(found) > longest:
        raise Unreadable(f"{what} is longer than {longest} characters")
    if _CONTROL.search(found):
        raise Unreadable(f"{what} holds control characters")
    return found


def matching(raw: str, what: str, pattern: str) -> str:
    """Text of that shape, without the blanks around it. Raises Unreadable."""
    found = raw.strip()
    if not re.fullmatch(pattern, found, re.ASCII):
        raise Unreadable(f"{what} cannot be {found[:30]!r}")
    return found


def instant(raw: str, year: str, month: str, day: str, time: str) -> datetime:
    """The instant of a time in Bangkok, which `raw` told. time: HHMMSS. Raises Unreadable."""
    hour, minute, second = int(time[:2]), int(time[2:4]), int(time[4:])
    try:
        found = datetime(int(year), int(month), int(day), hour, minute, second, tzinfo=BANGKOK)
    except ValueError:
        raise Unreadable(f"there is no time {raw[:40]!r}") from None
    if found.year not in YEARS:
        raise Unreadable(f"the year cannot be {found.year}")
    return found.astimezone(UTC)


def _skip_rest(file: BinaryIO) -> None:
    while chunk := file.readline(65_536):
        if chunk.endswith(b"\n"):
            return
