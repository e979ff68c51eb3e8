"""A CSV file with named columns: what a bank's web page or a spreadsheet gives."""

import csv
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

from banks.base import Kind, Unreadable
from core import money
from core.spreadsheets import original_cell
from receipts.statements.lines import LONGEST, Line, NotAStatement, Row, instant, matching, text

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
KINDS: dict[str, Kind] = {"credit": "credit", "debit": "reversal"}


def rows(lines: Iterable[tuple[int, bytes]], encoding: str) -> Iterator[Row]:
    """Every line below the header. Raises NotAStatement where columns are missing."""
    places: list[int] | None = None
    for number, raw in lines:
        if places is None:
            places = _places(raw, encoding)
        else:
            yield _row(number, raw, encoding, places)


def read(cells: Sequence[str]) -> Line:
    """What the cells of `COLUMNS` say. Raises Unreadable."""
    day, time, biller, one, two, three, amount, kind, name, bank_code = cells
    biller_id = matching(biller, "the biller id", "[0-9]{13}|[0-9]{15}")
    return Line(
        kind=KINDS[matching(kind.lower(), "the type", "credit|debit")],
        biller_id=biller_id,
        reference1=text(one, "reference 1", 35),
        reference2=text(two, "reference 2", 35),
        reference3=text(three, "reference 3", 35),
        amount=_amount(amount),
        paid_at=_paid_at(day, time),
        payer_name=text(name, "the payer's name", 140),
        payer_bank_code=matching(bank_code, "the payer's bank", "[0-9]{3}|"),
    )


def _places(raw: bytes, encoding: str) -> list[int]:
    """Where each of `COLUMNS` is; others may stand between them."""
    try:
        names = [name.strip().lower() for name in _cells(raw, encoding)]
    except Unreadable as unreadable:
        raise NotAStatement(f"The line with the names of the columns cannot be read: {unreadable}.") from None
    if len(names) == 1 and any(sign in names[0] for sign in ";\t|"):
        raise NotAStatement("Its columns are not separated by commas.")
    missing = [name for name in COLUMNS if name not in names]
    if missing:
        raise NotAStatement(f"Columns are missing: {', '.join(missing)}.")
    twice = [name for name in COLUMNS if names.count(name) > 1]
    if twice:
        raise NotAStatement(f"Columns are there twice: {', '.join(twice)}.")
    return [names.index(name) for name in COLUMNS]


def _row(number: int, raw: bytes, encoding: str, places: Sequence[int]) -> Row:
    # Another export may have other columns in another order: only what is read counts.
    content = raw
    try:
        cells = _cells(raw, encoding)
        if len(cells) <= max(places):
            raise Unreadable(f"it has only {len(cells)} cells")
        known = [original_cell(cells[place]).strip() for place in places]
        content = "\x1f".join(known).encode()
        return Row(number, raw, read(known))
    except Unreadable as unreadable:
        return Row(number, raw, None, content, str(unreadable))


def _cells(raw: bytes, encoding: str) -> list[str]:
    if len(raw) > LONGEST:
        raise Unreadable(f"it is longer than {LONGEST} bytes")
    try:
        return next(csv.reader([raw.decode(encoding)], strict=True))
    except UnicodeDecodeError:
        raise Unreadable(f"it holds bytes that are no text in {encoding.upper()}") from None
    except (csv.Error, StopIteration):
        raise Unreadable("it is no well-formed CSV") from None


def _amount(baht: str) -> int:
    try:
        satang = money.satang(baht.strip())
    except ValueError as error:
        raise Unreadable(str(error)) from None
    if not 0 < satang < 10**13:
        raise Unreadable("the amount is zero or beyond all measure")
    return satang


def _paid_at(day: str, time: str) -> datetime:
    shape = matching(day, "the date", r"\d{4}-\d{2}-\d{2}|\d{2}/\d{2}/\d{4}")
    clock = matching(time, "the time", r"\d{2}:\d{2}:\d{2}")
    year, month, date = shape.split("-") if "-" in shape else shape.split("/")[::-1]
    return instant(f"{shape} {clock}", year, month, date, clock.replace(":", ""))
