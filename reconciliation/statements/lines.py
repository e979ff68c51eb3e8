"""What all formats share: lines as bytes, parsed lines, and the digest that identifies a line."""

import codecs
import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import cached_property
from typing import BinaryIO

from banks.base import ReportedTransaction, UnreadableMessage
from banks.parsing import BUDDHIST_ERA, YEARS
from core import plain_text
from core.clock import BANGKOK
from ledger.services import Fee
from reconciliation.models import BankTransaction

MAX_LINE_BYTES = 4_096  # no format has longer lines; the rest of a longer line is dropped
MAX_PROBLEMS = 20
LineKey = tuple[str, date | None, str, int]
ALREADY_STORED = "known"  # the result of a line that an earlier import stored
CONTROL_CHARACTERS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")


class InvalidStatementFile(Exception):
    """The file has no known format or is of another bank. Nothing of it is stored."""


class ReaderBusy(Exception):
    """Another file has the only reader of Excel files of this machine. The message says to try again."""


@dataclass(frozen=True, slots=True)
class Record:
    """A row of a table."""

    number: int  # of its first line in the file, from 1
    cells: Sequence[str]
    raw: bytes  # as staff see it
    error: str = ""  # why none of its cells can be trusted
    # Of the cells of a spreadsheet: `n` for a number, `d` for a date or time, `s` for text.
    kinds: str = ""


@dataclass
class FileLine:
    """A line of a file, byte for byte, and what it reports: no id of the bank and no account of the payer.

    If `parsed` is None, `error` has the reason, and `content` is the part that is equal in every export.
    """

    number: int
    raw: bytes
    parsed: ReportedTransaction | None
    content: bytes = b""
    error: str = ""
    fee: Fee | None = None  # what the bank keeps, if the line names it. It identifies nothing
    occurrence: int = 1  # 1 for the first equal line of its file, 2 for the second
    result: str = ""  # a LineResult or ALREADY_STORED, once it is stored
    bank_transaction: BankTransaction | None = None  # an unreadable line has none

    @cached_property
    def sha256(self) -> str:
        return hashlib.sha256(identity_of(self.parsed) if self.parsed else self.content).hexdigest()

    @property
    def key(self) -> LineKey:
        """What identifies a line at its bank."""
        return self.biller_id, self.bank_date, self.sha256, self.occurrence

    @property
    def biller_id(self) -> str:
        return self.parsed.biller_id if self.parsed else ""

    @property
    def bank_date(self) -> date | None:
        return self.parsed.paid_at.astimezone(BANGKOK).date() if self.parsed else None


@dataclass(slots=True)
class FileProblems:
    """Problems of a file as a whole, in sentences: the first 20, and the number of the others."""

    messages: list[str] = field(default_factory=list)
    omitted: int = 0

    def add(self, sentence: str) -> None:
        if len(self.messages) < MAX_PROBLEMS:
            self.messages.append(sentence)
        else:
            self.omitted += 1

    def __iter__(self) -> Iterator[str]:
        yield from self.messages
        if self.omitted:
            yield f"And {self.omitted} more of the kind."


def numbered_lines(file: BinaryIO) -> Iterator[tuple[int, bytes]]:
    """The lines that are not blank, without line ends, and their numbers from 1.

    A longer line is cut after `MAX_LINE_BYTES` + 1 bytes, so that the format sees that it is too long.
    """
    number, start = 0, codecs.BOM_UTF8
    while chunk := file.readline(MAX_LINE_BYTES + 1):
        number += 1
        line, start = chunk.removeprefix(start).rstrip(b"\r\n"), b""
        if len(chunk) > MAX_LINE_BYTES and not chunk.endswith(b"\n"):
            while (rest := file.readline(65_536)) and not rest.endswith(b"\n"):
                pass
        if line.strip(b" \t\x1a"):  # old systems end a file with Ctrl-Z
            yield number, line


def identity_of(report: ReportedTransaction) -> bytes:
    """What no program leaves out or changes: the identity of the line in every export and format.

    Formats cut and mask the payer. A spreadsheet drops zeros in front of references that are digits, and some
    exports have no references 2 and 3.
    """
    is_number = report.reference1.isascii() and report.reference1.isdecimal()
    reference = report.reference1.lstrip("0") if is_number else report.reference1
    fields = (report.kind, report.biller_id, reference, str(report.amount), report.paid_at.isoformat())
    return "\x1f".join(fields).encode()


def parse_text(raw: str, label: str, max_length: int) -> str:
    """The text without surrounding blanks. Raises UnreadableMessage."""
    value = plain_text.visible(raw).strip()
    if len(value) > max_length:
        raise UnreadableMessage(f"{label} is longer than {max_length} characters")
    if CONTROL_CHARACTERS.search(value):
        raise UnreadableMessage(f"{label} contains control characters")
    return value


def parse_pattern(raw: str, label: str, pattern: str) -> str:
    """The text without surrounding blanks, if it matches. Raises UnreadableMessage."""
    value = raw.strip()
    if not re.fullmatch(pattern, value, re.ASCII):
        raise UnreadableMessage(f"{label} cannot be {value[:30]!r}")
    return value


def parse_bangkok_time(raw: str, year: str, month: str, day: str, time: str) -> datetime:
    """The instant of a time in Bangkok. time: HHMMSS. raw: for the error. Raises UnreadableMessage.

    year: of the common or of the Buddhist era; no year can be of both.
    """
    common_year = int(year) - (BUDDHIST_ERA if int(year) - BUDDHIST_ERA in YEARS else 0)
    if common_year not in YEARS:
        raise UnreadableMessage(f"the year cannot be {int(year)}")
    hour, minute, second = int(time[:2]), int(time[2:4]), int(time[4:])
    try:
        found = datetime(common_year, int(month), int(day), hour, minute, second, tzinfo=BANGKOK)
    except ValueError:
        raise UnreadableMessage(f"there is no time {raw[:40]!r}") from None
    return found.astimezone(UTC)
