"""Files that spreadsheets open: CSV, XLSX, and archives of CSV files. No cell of them is a formula."""

import io
import tempfile
import zipfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from itertools import chain
from typing import IO

import xlsxwriter

from core import dates
from core.console import csv_cells
from core.console.csv_cells import escape_cell

Cell = str | int | Decimal | date | datetime | None
"""A Decimal is an amount in baht; a datetime has whole seconds and no zone, which its column names."""


@dataclass(frozen=True, slots=True)
class FileType:
    """A kind of file. `max_rows` includes the header; None: no limit."""

    name: str
    content_type: str
    is_text: bool
    max_rows: int | None = None


# Thai years with the digits 0 to 9, as Excel and LibreOffice know them.
BUDDHIST_CALENDAR = "[$-107041E]"
A4 = 9
COLUMN_WIDTH = 26  # characters
ZIP = FileType("zip", "application/zip", is_text=False)
CSV = FileType("csv", "text/csv; charset=utf-8", is_text=True)
_OPEN_XML = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
XLSX = FileType("xlsx", _OPEN_XML, is_text=False, max_rows=1_048_576)


class BoldRow(list[Cell]):
    """A row that is bold in a workbook, such as a sum."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """A table. name: of its file in an archive. title: of the sheet in a workbook, at most 31 characters."""

    name: str
    title: str | None
    header: Sequence[str]
    rows: Iterable[Sequence[Cell]]


def write(file: IO[bytes], file_type: FileType, header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> int:
    """Write a table and return the number of rows without the header. Memory stays flat."""
    return write_sheets(file, file_type, [Sheet("sheet", None, header, rows)])


def write_sheets(
    file: IO[bytes], file_type: FileType, sheets: Iterable[Sheet], *, is_buddhist: bool = False
) -> int:
    """Write tables one after the other, as `write` does. A CSV file has only one.

    is_buddhist: dates have the year of the Buddhist calendar. In a workbook they are dates all the same.
    """
    if file_type is XLSX:
        return _write_xlsx(file, sheets, is_buddhist)
    if file_type is CSV:
        return sum(_write_csv(file, sheet, is_buddhist) for sheet in sheets)
    count = 0
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for sheet in sheets:
            # The same input gives the same bytes. A file can be larger than 2 GB.
            entry = zipfile.ZipInfo(f"{sheet.name}.csv")
            entry.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(entry, "w", force_zip64=True) as target:
                count += _write_csv(target, sheet, is_buddhist)
    return count


def _write_csv(file: IO[bytes], sheet: Sheet, is_buddhist: bool) -> int:
    def text_of(cell: Cell) -> Cell:
        if isinstance(cell, str):
            return escape_cell(cell)
        return dates.buddhist(cell) if is_buddhist and isinstance(cell, date) else cell

    # Excel reads UTF-8 only after a byte order mark; Thai would be unreadable.
    text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="", write_through=True)
    lines, count = csv_cells.writer(text), -1  # the header does not count
    try:
        for row in chain([sheet.header], sheet.rows):
            lines.writerow(map(text_of, row))
            count += 1
    finally:
        text.detach()  # the caller closes the file
    return count


def _write_xlsx(file: IO[bytes], sheets: Iterable[Sheet], is_buddhist: bool) -> int:
    # The rows wait in a file of their own until the end, which is deleted after an error too.
    with tempfile.TemporaryDirectory() as folder:
        options = {"constant_memory": True, "tmpdir": folder}
        # A text is never a formula or a link.
        options |= {"strings_to_formulas": False, "strings_to_urls": False}
        book, total = xlsxwriter.Workbook(file, options), 0
        calendar = BUDDHIST_CALENDAR if is_buddhist else ""
        kinds = {
            Decimal: "#,##0.00",
            date: f"{calendar}yyyy-mm-dd",
            datetime: f"{calendar}yyyy-mm-dd hh:mm:ss",
        }
        formats = {
            (kind, is_bold): book.add_format({"num_format": form, "bold": is_bold})
            for kind, form in {**kinds, str: "General", int: "General"}.items()
            for is_bold in (False, True)
        }
        for sheet in sheets:
            page, count = book.add_worksheet(sheet.title), 0
            page.freeze_panes(1, 0)
            page.set_landscape()
            page.set_paper(A4)
            page.fit_to_pages(1, 0)  # as wide as the paper
            page.set_column(0, len(sheet.header) - 1, COLUMN_WIDTH)
            for count, row in enumerate(chain([BoldRow(sheet.header)], sheet.rows)):
                for column, value in enumerate(row):
                    page.write(count, column, value, formats.get((type(value), isinstance(row, BoldRow))))
            total += count
        book.close()
    return total
