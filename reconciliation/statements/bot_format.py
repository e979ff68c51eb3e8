"""The bill payment file of the Bank of Thailand's cross-bank standard: 256 characters a line, in CP874.

A header (H), details (D) and a trailer (T) with the totals of the details; a file may hold several such
blocks. Offsets are from 0, ends exclusive; amounts are digits, the last two of which are satang.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator

from banks.base import ReportedTransaction, TransactionKind, UnreadableMessage
from core import money, plain_text
from reconciliation.statements.lines import (
    FileLine,
    FileProblems,
    parse_bangkok_time,
    parse_pattern,
    parse_text,
)

LINE_WIDTH = 256
ENCODING = "cp874"
LINE_START = re.compile(rb"[HDT][0-9]{6}")
SEQUENCE_NUMBER = slice(1, 7)  # the line's number, which differs in another export
KINDS: dict[str, TransactionKind] = {"C": "credit", "D": "reversal"}
_TRAILER_TOTALS = re.compile(rb"[0-9]{13}[0-9]{6}[0-9]{13}[0-9]{6}")


def read_lines(lines: Iterable[tuple[int, bytes]], problems: FileProblems) -> Iterator[FileLine]:
    """The details. An error in a header or trailer is a problem of the file."""
    found: Counter[str] | None = None  # satang and lines by kind
    for number, raw in lines:
        kind = raw[:1] if LINE_START.match(raw) else b""
        if kind == b"H":
            if found is not None:
                problems.add(f"Line {number} is a header where a trailer is missing.")
            found = Counter()
        elif kind == b"T":
            _check_trailer(number, raw, found, problems)
            found = None
        else:
            if found is None:
                problems.add(f"Line {number} has no header before it.")
                found = Counter()
            file_line = _read_detail(number, raw)
            if file_line.parsed:
                found[file_line.parsed.kind] += file_line.parsed.amount
                found[f"{file_line.parsed.kind} lines"] += 1
            yield file_line
    if found is not None:
        problems.add("The file ends without a trailer: it may have been cut off.")


def parse_detail(raw: bytes) -> ReportedTransaction:
    """Raises UnreadableMessage."""
    cells = _decode(raw)
    if not raw.startswith(b"D"):
        raise UnreadableMessage("no line begins like this one")
    at = parse_pattern(cells[20:34], "date and time", "[0-9]{14}")
    return ReportedTransaction(
        bank_reference="",
        kind=KINDS[parse_pattern(cells[152], "credit or debit", "[CD]")],
        biller_id=parse_pattern(cells[196:211], "the biller id", "[0-9]{13}|[0-9]{15}"),
        reference1=parse_text(cells[84:104], "reference 1", 20),
        reference2=parse_text(cells[104:124], "reference 2", 20),
        reference3=parse_text(cells[124:144], "reference 3", 20),
        amount=_amount(cells[163:176]),
        paid_at=parse_bangkok_time(at, year=at[4:8], month=at[2:4], day=at[:2], time=at[8:]),
        payer_name=parse_text(plain_text.name(cells[34:84]), "the payer's name", 50),
        payer_bank_code=parse_pattern(cells[243:246], "the payer's bank", "[0-9]{3}|"),
        payer_account="",
    )


def _amount(digits: str) -> int:
    """Satang. Raises UnreadableMessage."""
    satang = int(parse_pattern(digits, "the amount", "[0-9]{13}"))
    if satang == 0:
        raise UnreadableMessage("the amount is zero")
    return satang


def bank_code_of(first: bytes) -> str:
    """The code of the bank that wrote the file, from its first line; empty if it is not readable."""
    code = first[7:10]
    return code.decode() if LINE_START.match(first) and code.isdigit() else ""


def _read_detail(number: int, raw: bytes) -> FileLine:
    try:
        return FileLine(number, raw, parse_detail(raw))
    except UnreadableMessage as error:
        unnumbered = raw[: SEQUENCE_NUMBER.start] + raw[SEQUENCE_NUMBER.stop :]
        return FileLine(number, raw, None, unnumbered, str(error))


def _decode(raw: bytes) -> str:
    """Raises UnreadableMessage."""
    if len(raw) != LINE_WIDTH:  # saved as UTF-8, where a Thai letter takes three bytes
        cells = raw.decode(errors="replace")
        if len(cells) == LINE_WIDTH and "\ufffd" not in cells:
            return cells
        length = str(len(raw)) if len(raw) < 2 * LINE_WIDTH else "far more"
        raise UnreadableMessage(f"a line has {LINE_WIDTH} characters, this one {length}")
    try:
        return raw.decode(ENCODING)
    except UnicodeDecodeError:
        raise UnreadableMessage("it contains bytes that are not valid CP874") from None


def _check_trailer(number: int, raw: bytes, found: Counter[str] | None, problems: FileProblems) -> None:
    if found is None:
        problems.add(f"Line {number} is a trailer without a header.")
        return
    if len(raw) != LINE_WIDTH or not _TRAILER_TOTALS.fullmatch(raw[20:58]):
        problems.add(f"Line {number} is a trailer that cannot be read.")
        return
    stated = _totals(int(raw[52:58]), int(raw[39:52]), int(raw[33:39]), int(raw[20:33]))
    counted = _totals(found["credit lines"], found["credit"], found["reversal lines"], found["reversal"])
    if stated != counted:
        problems.add(f"The trailer in line {number} states {stated}, but the lines are {counted}.")


def _totals(credits: int, credit: int, debits: int, debit: int) -> str:
    """Numbers of lines, and satang."""
    return f"{credits} credits of {money.with_code(credit)} and {debits} debits of {money.with_code(debit)}"
