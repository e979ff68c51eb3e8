"""The bill payment file of the Bank of Thailand's cross-bank standard: 256 characters a line, in CP874.

A header (H), details (D) and a trailer (T) with the totals of the details; a file may hold several such
blocks. Offsets are from 0, ends exclusive; amounts are digits, the last two of which are satang.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime

from banks.base import Kind, Unreadable
from core import money
from receipts.statements.lines import Complaints, Line, Row, instant, matching, text

WIDTH = 256
ENCODING = "cp874"
BEGINNING = re.compile(rb"[HDT][0-9]{6}")
# The line's number in its file, which is another one in another export.
SEQUENCE = slice(1, 7)
KINDS: dict[str, Kind] = {"C": "credit", "D": "reversal"}
_TOTALS = re.compile(rb"[0-9]{13}[0-9]{6}[0-9]{13}[0-9]{6}")


@dataclass(slots=True)
class Totals:
    """Satang and lines, as a trailer tells them and as they are found."""

    debit: int = 0
    debits: int = 0
    credit: int = 0
    credits: int = 0

    def count(self, line: Line) -> None:
        if line.kind == "credit":
            self.credit, self.credits = self.credit + line.amount, self.credits + 1
        else:
            self.debit, self.debits = self.debit + line.amount, self.debits + 1

    def __str__(self) -> str:
        credit, debit = money.display(self.credit), money.display(self.debit)
        return f"{self.credits} credits of {credit} and {self.debits} debits of {debit}"


def rows(lines: Iterable[tuple[int, bytes]], complaints: Complaints) -> Iterator[Row]:
    """Every line that is not a header or a trailer. What is wrong with those is a complaint."""
    found: Totals | None = None
    for number, raw in lines:
        kind = raw[:1] if BEGINNING.match(raw) else b""
        if kind == b"H":
            if found is not None:
                complaints.add(f"Line {number} is a header where a trailer is missing.")
            found = Totals()
        elif kind == b"T":
            _compare(number, raw, found, complaints)
            found = None
        else:
            if found is None:
                complaints.add(f"Line {number} has no header before it.")
                found = Totals()
            row = _row(number, raw)
            if row.line:
                found.count(row.line)
            yield row
    if found is not None:
        complaints.add("The file ends without a trailer: it may have been cut off.")


def read(raw: bytes) -> Line:
    """What a detail says. Raises Unreadable."""
    cells = _characters(raw)
    if not raw.startswith(b"D"):
        raise Unreadable("no line begins like this one")
    return Line(
        kind=KINDS[matching(cells[152], "credit or debit", "[CD]")],
        biller_id=matching(cells[196:211], "the biller id", "[0-9]{13}|[0-9]{15}"),
        reference1=text(cells[84:104], "reference 1", 20),
        reference2=text(cells[104:124], "reference 2", 20),
        reference3=text(cells[124:144], "reference 3", 20),
        amount=_amount(cells[163:176]),
        paid_at=_paid_at(matching(cells[20:34], "date and time", "[0-9]{14}")),
        payer_name=text(cells[34:84], "the payer's name", 50),
        payer_bank_code=matching(cells[243:246], "the payer's bank", "[0-9]{3}|"),
    )


def bank_code_of(first: bytes) -> str:
    """Of the bank that wrote the file, by its first line, or empty where nobody can tell."""
    code = first[7:10]
    return code.decode() if BEGINNING.match(first) and code.isdigit() else ""


def _row(number: int, raw: bytes) -> Row:
    try:
        return Row(number, raw, read(raw))
    except Unreadable as unreadable:
        unnumbered = raw[: SEQUENCE.start] + raw[SEQUENCE.stop :]
        return Row(number, raw, None, unnumbered, str(unreadable))


def _characters(raw: bytes) -> str:
    """All of a line. Raises Unreadable."""
    if len(raw) != WIDTH:
        return _saved_again(raw)
    try:
        return raw.decode(ENCODING)
    except UnicodeDecodeError:
        raise Unreadable("it holds bytes that are no character of CP874") from None


def _saved_again(raw: bytes) -> str:
    """In UTF-8, by an editor that showed it well: Thai letters take three bytes there. Raises Unreadable."""
    cells = raw.decode(errors="replace")
    if len(cells) != WIDTH or "\ufffd" in cells:
        raise Unreadable(f"a line has {WIDTH} characters, this one {_length(raw)}")
    return cells


def _amount(digits: str) -> int:
    satang = int(matching(digits, "the amount", "[0-9]{13}"))
    if satang == 0:
        raise Unreadable("the amount is zero")
    return satang


def _paid_at(told: str) -> datetime:
    return instant(told, year=told[4:8], month=told[2:4], day=told[:2], time=told[8:])


def _length(raw: bytes) -> str:
    return str(len(raw)) if len(raw) < 2 * WIDTH else "far more"


def _compare(number: int, raw: bytes, found: Totals | None, complaints: Complaints) -> None:
    if found is None:
        complaints.add(f"Line {number} is a trailer without a header.")
        return
    if len(raw) != WIDTH or not _TOTALS.fullmatch(raw[20:58]):
        complaints.add(f"Line {number} is a trailer that cannot be read.")
        return
    told = Totals(int(raw[20:33]), int(raw[33:39]), int(raw[39:52]), int(raw[52:58]))
    if told != found:
        complaints.add(f"The trailer in line {number} tells of {told}, but the lines are {found}.")
