"""A table with named columns, as a bank's website or a spreadsheet exports it: CSV or Excel.

Every record after the header is a line of the statement, except blank ones, repeated headers and totals.
"""

import re
import tomllib
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path
from typing import Any

from banks.base import ReportedTransaction, UnreadableMessage
from core import plain_text
from core.console.csv_cells import unescape_cell
from reconciliation.statements import cells
from reconciliation.statements.lines import (
    CONTROL_CHARACTERS,
    MAX_LINE_BYTES,
    FileLine,
    InvalidStatementFile,
    Record,
    parse_text,
)

Records = Callable[[], Iterable[Record]]
# Our columns: how others name them, and what stands in them.
COLUMNS: dict[str, dict[str, Any]] = tomllib.loads(
    Path(__file__).with_name("columns.toml").read_text("utf-8")
)
FEE_COLUMNS = ("fee", "fee_vat")
NEEDED = {name for name, column in COLUMNS.items() if column["is_needed"]}
MAX_RECORDS_BEFORE = 50  # banks write their name, the account and the days before the table
_TOTALS = re.compile(r"((grand|sub)[ -]?)?totals?\b.*|sum\b.*|(ยอด)?รวม.*", re.IGNORECASE)
_NUMBER = re.compile(r"[\d.,]+")
_KEY_COLUMNS = ("date", "time", "biller_id", "reference1", "type")


@dataclass(frozen=True, slots=True)
class Table:
    """The records of a file with named columns, and what only all of them together tell."""

    records: Records
    header: Record  # the record with the names
    places: dict[str, int]  # of our columns that the file has
    sheet: str = ""  # its name in an Excel file
    # Whether all dates in numbers can have their day first, as in Thailand. If one cannot, the file writes
    # months first or mixes both, and 7/11/2026 is not clear in it.
    is_day_first: bool = True
    has_decimal_commas: bool = False  # an amount has a comma before its decimals: "1,500" is not clear

    @property
    def names(self) -> list[tuple[str, str]]:
        """The labels of our columns, and their names in the file, which are empty for those that it lacks."""
        cells = {name: self.header.cells[place].strip() for name, place in self.places.items()}
        return [(column["label"], cells.get(name, "")) for name, column in COLUMNS.items()]

    @property
    def ignored(self) -> list[str]:
        """The names of the other columns."""
        ours = self.places.values()
        others = [cell.strip() for place, cell in enumerate(self.header.cells) if place not in ours]
        return [name for name in others if name]


def find_header(records: Records) -> Record | None:
    """The first record that names reference 1 and the amount, or else the one that names the most columns.

    None if no record names two. Raises InvalidStatementFile if it is not clear where records end.
    """
    best, most = None, 1
    try:
        for record in islice(records(), MAX_RECORDS_BEFORE):
            names = _columns_of(record)
            if len(names) > most:
                best, most = record, len(names)
            if names >= {"reference1", "amount"}:
                return record
    except InvalidStatementFile:
        if best is None:
            raise
    return best


def is_complete(header: Record) -> bool:
    """Whether a record names all columns that are needed."""
    return _columns_of(header) >= NEEDED


def find_table(header: Record, records: Records, sheet: str = "") -> Table:
    """Raises InvalidStatementFile, also if columns are missing or twice."""
    for record in records():
        if record.number > header.number:
            break
        if _has_control_characters(record):  # lines of the statement could be in that cell
            raise InvalidStatementFile(
                f"Line {record.number} has a line break, or another control character, in a cell. Remove it: "
                "nothing up to the names of the columns may have one."
            )
    table = Table(records, header, _places(header), sheet)
    is_day_first, has_decimal_commas, kinds_of_dates = True, False, set()
    for record in records():
        if record.number < header.number and _read_line(record, table).parsed:
            raise InvalidStatementFile(
                f"Line {record.number} is a line of the statement, but stands above the names of the "
                "columns. Move it below them."
            )
        if record.number > header.number and not _is_header_again(record, table):
            date = _cell(record, table, "date")
            amounts = (_cell(record, table, column) for column in ("amount", *FEE_COLUMNS))
            is_day_first = is_day_first and not cells.is_month_first(date)
            has_decimal_commas = has_decimal_commas or any(map(cells.has_decimal_comma, amounts))
            if cells.is_order_of_numbers(date):
                kinds_of_dates.add("s")
            elif cells.is_year_first(date) or _kind(record, table, "date") == "d":
                kinds_of_dates.add("d")
    # A spreadsheet turns the texts that it understands, month first, into dates, and leaves the others.
    is_mixed = len(kinds_of_dates) > 1
    return replace(table, is_day_first=is_day_first and not is_mixed, has_decimal_commas=has_decimal_commas)


def read_lines(table: Table) -> Iterator[FileLine]:
    """The lines after the header."""
    for record in table.records():
        if record.number > table.header.number and not _is_no_line(record, table):
            yield _read_line(record, table)


def _places(header: Record) -> dict[str, int]:
    """The place of each of our columns. Our own name goes before others. Raises InvalidStatementFile."""
    if header.error:
        raise InvalidStatementFile(f"The line with the names of the columns cannot be read: {header.error}.")
    names = [_plain_name(cell) for cell in header.cells]
    places: dict[str, list[int]] = {}
    for column in COLUMNS:
        own = [place for place, name in enumerate(names) if name == _plain_name(column)]
        places[column] = own or [place for place, name in enumerate(names) if _OUR_NAMES.get(name) == column]
    if missing := [column for column, found in places.items() if not found and column in NEEDED]:
        # For people who do not know our names: for the type also what stands in it.
        hints = {"type": 'type ("credit/debit", with credit or debit in each line)'}
        named = ", ".join(hints.get(column, column) for column in missing)
        raise InvalidStatementFile(f"Columns are missing: {named}.")
    if twice := [column for column, found in places.items() if len(found) > 1]:
        raise InvalidStatementFile(f"Columns are duplicated: {', '.join(twice)}.")
    return {column: found[0] for column, found in places.items() if found}


def _is_no_line(record: Record, table: Table) -> bool:
    """Whether a record is blank, the header again (as on each page of a report), or totals."""
    texts = [cells.plain(cell) for cell in record.cells]
    if not any(text.strip("\x1a") for text in texts):  # old systems end a file with Ctrl-Z
        return True
    if record.error or _has_control_characters(record):
        return False
    if _is_header_again(record, table):
        return True
    keys = [_cell(record, table, column) for column in _KEY_COLUMNS]
    is_key_free = not any(key for key in keys if not _TOTALS.fullmatch(key))
    return is_key_free and any(_TOTALS.fullmatch(text) for text in texts)


def _is_header_again(record: Record, table: Table) -> bool:
    """Raises InvalidStatementFile for names of another table, whose lines would be read by the wrong ones."""
    if _NUMBER.fullmatch(_cell(record, table, "amount")) or not is_complete(record):
        return False
    if _places(record) != table.places:
        raise InvalidStatementFile(
            f"Line {record.number} names the columns again, but otherwise than line {table.header.number}. "
            "Import each table as a file of its own."
        )
    return True


def _read_line(record: Record, table: Table) -> FileLine:
    # Another export may have other columns in another order, so the digest covers only the known ones, and
    # none of the fee, which some exports lack.
    content = "\x1f".join(_cell(record, table, column) for column in COLUMNS if column not in FEE_COLUMNS)
    try:
        parsed = _parse(record, table)
        fee, vat = (_cell(record, table, column) for column in FEE_COLUMNS)
        named = cells.parse_fee(fee, vat, parsed.amount, has_decimal_commas=table.has_decimal_commas)
        return FileLine(record.number, record.raw, parsed, fee=named)
    except UnreadableMessage as error:
        digested = record.raw if record.error else content.encode()
        return FileLine(record.number, record.raw[: MAX_LINE_BYTES + 1], None, digested, str(error))


def _parse(record: Record, table: Table) -> ReportedTransaction:
    """Raises UnreadableMessage."""
    _check(record, table)
    values = {column: _cell(record, table, column) for column in COLUMNS}
    is_date_clear = table.is_day_first or not (
        cells.is_order_of_numbers(values["date"]) or _kind(record, table, "date") == "d"
    )
    if not is_date_clear:
        raise UnreadableMessage(
            "the file does not write all dates with the day first, so this one is not clear"
        )
    biller_id = cells.parse_biller(values["biller_id"])
    return ReportedTransaction(
        bank_reference="",
        kind=cells.parse_kind(values["type"]),
        biller_id=biller_id,
        reference1=cells.parse_reference1(
            values["reference1"], is_text=_kind(record, table, "reference1") in ("", "s")
        ),
        reference2=parse_text(values["reference2"], "reference 2", 35),
        reference3=parse_text(values["reference3"], "reference 3", 35),
        amount=cells.parse_amount(values["amount"], has_decimal_commas=table.has_decimal_commas),
        paid_at=cells.parse_paid_at(values["date"], values["time"]),
        payer_name=parse_text(plain_text.name(values["payer_name"]), "the payer's name", 140),
        payer_bank_code=cells.parse_bank_code(values["payer_bank_code"]),
        payer_account="",
    )


def _check(record: Record, table: Table) -> None:
    """Refuse a record whose cells a person may see otherwise. Raises UnreadableMessage."""
    if record.error:
        raise UnreadableMessage(record.error)
    if len(record.raw) > MAX_LINE_BYTES:
        raise UnreadableMessage(f"it is longer than {MAX_LINE_BYTES} bytes")
    if _has_control_characters(record):
        raise UnreadableMessage("a cell contains a line break or another control character")
    if len(record.cells) <= max(table.places[column] for column in NEEDED):
        raise UnreadableMessage(f"it has only {len(record.cells)} cells")


def _has_control_characters(record: Record) -> bool:
    return any(CONTROL_CHARACTERS.search(cells.plain(cell)) for cell in record.cells)


def _cell(record: Record, table: Table, column: str) -> str:
    """The text of a column, empty if the file or the record does not have it."""
    place = table.places.get(column, len(record.cells))
    return cells.plain(unescape_cell(record.cells[place])) if place < len(record.cells) else ""


def _kind(record: Record, table: Table, column: str) -> str:
    place = table.places.get(column, len(record.kinds))
    return record.kinds[place : place + 1]


def _columns_of(record: Record) -> set[str]:
    """Our columns that a record names."""
    return {_OUR_NAMES[name] for name in map(_plain_name, record.cells) if name in _OUR_NAMES}


def _plain_name(name: str) -> str:
    return re.sub(r"[\W_]+", "", unicodedata.normalize("NFKC", name).casefold())


_OUR_NAMES = {_plain_name(name): own for own, column in COLUMNS.items() for name in (own, *column["names"])}
