"""A CSV file with named columns, as a bank's website or a spreadsheet exports it."""

import csv
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from banks.base import TransactionKind, UnreadableMessage
from core import money
from core.csv_cells import unescape_cell
from reconciliation.statements.lines import (
    MAX_LINE_BYTES,
    FileLine,
    InvalidStatementFile,
    ParsedLine,
    parse_bangkok_time,
    parse_pattern,
    parse_text,
)

COLUMNS = (
    "date",
    "time",
    "biller_id",
    "reference1",
    "reference2",
    "reference3",
    "amount",
    "type",
    "payer_name",
    "payer_bank_code",
)
KINDS: dict[str, TransactionKind] = {"credit": "credit", "debit": "reversal"}


def read_lines(lines: Iterable[tuple[int, bytes]], encoding: str) -> Iterator[FileLine]:
    """The lines after the header. Raises InvalidStatementFile if columns are missing."""
    places: list[int] | None = None
    for number, raw in lines:
        if places is None:
            places = _column_positions(raw, encoding)
        else:
            yield _read_line(number, raw, encoding, places)


def parse_cells(cells: Sequence[str]) -> ParsedLine:
    """Raises UnreadableMessage."""
    day, time, biller, one, two, three, amount, kind, name, bank_code = cells
    biller_id = parse_pattern(biller, "the biller id", "[0-9]{13}|[0-9]{15}")
    return ParsedLine(
        kind=KINDS[parse_pattern(kind.lower(), "the type", "credit|debit")],
        biller_id=biller_id,
        reference1=parse_text(one, "reference 1", 35),
        reference2=parse_text(two, "reference 2", 35),
        reference3=parse_text(three, "reference 3", 35),
        amount=_amount(amount),
        paid_at=_paid_at(day, time),
        payer_name=parse_text(name, "the payer's name", 140),
        payer_bank_code=parse_pattern(bank_code, "the payer's bank", "[0-9]{3}|"),
    )


def _column_positions(raw: bytes, encoding: str) -> list[int]:
    """The position of each of `COLUMNS`. A file may have other columns too."""
    try:
        names = [name.strip().lower() for name in _cells(raw, encoding)]
    except UnreadableMessage as error:
        raise InvalidStatementFile(
            f"The line with the names of the columns cannot be read: {error}."
        ) from None
    if len(names) == 1 and any(sign in names[0] for sign in ";\t|"):
        raise InvalidStatementFile("The columns are not separated by commas.")
    missing = [name for name in COLUMNS if name not in names]
    if missing:
        raise InvalidStatementFile(f"Columns are missing: {', '.join(missing)}.")
    twice = [name for name in COLUMNS if names.count(name) > 1]
    if twice:
        raise InvalidStatementFile(f"Columns are duplicated: {', '.join(twice)}.")
    return [names.index(name) for name in COLUMNS]


def _read_line(number: int, raw: bytes, encoding: str, places: Sequence[int]) -> FileLine:
    # Another export may have other columns in another order, so the digest covers only the known ones.
    content = raw
    try:
        cells = _cells(raw, encoding)
        if len(cells) <= max(places):
            raise UnreadableMessage(f"it has only {len(cells)} cells")
        known = [unescape_cell(cells[place]).strip() for place in places]
        content = "\x1f".join(known).encode()
        return FileLine(number, raw, parse_cells(known))
    except UnreadableMessage as error:
        return FileLine(number, raw, None, content, str(error))


def _cells(raw: bytes, encoding: str) -> list[str]:
    if len(raw) > MAX_LINE_BYTES:
        raise UnreadableMessage(f"it is longer than {MAX_LINE_BYTES} bytes")
    try:
        return next(csv.reader([raw.decode(encoding)], strict=True))
    except UnicodeDecodeError:
        raise UnreadableMessage(f"it contains bytes that are not valid {encoding.upper()}") from None
    except (csv.Error, StopIteration):
        raise UnreadableMessage("it is not valid CSV") from None


def _amount(baht: str) -> int:
    try:
        satang = money.satang(baht.strip())
    except ValueError as error:
        raise UnreadableMessage(str(error)) from None
    if not 0 < satang < 10**13:
        raise UnreadableMessage("the amount is zero or too large")
    return satang


def _paid_at(day: str, time: str) -> datetime:
    shape = parse_pattern(day, "the date", r"\d{4}-\d{2}-\d{2}|\d{2}/\d{2}/\d{4}")
    clock = parse_pattern(time, "the time", r"\d{2}:\d{2}:\d{2}")
    year, month, date = shape.split("-") if "-" in shape else shape.split("/")[::-1]
    return parse_bangkok_time(f"{shape} {clock}", year, month, date, clock.replace(":", ""))
