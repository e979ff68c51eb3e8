"""Files that spreadsheets open: CSV and XLSX. No cell of them is a formula."""

import io
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from itertools import chain
from typing import IO

import xlsxwriter

from core.console import csv_cells
from core.console.csv_cells import escape_cell

Cell = str | int | Decimal | date | datetime | None
"""A Decimal is an amount in baht; a datetime has whole seconds and no zone, which its column names."""
# The limit of the format.
XLSX_ROWS = 1_048_576


@dataclass(frozen=True, slots=True)
class FileType:
    """A kind of file. `max_rows` includes the header; None: no limit."""

    name: str
    content_type: str
    is_text: bool
    max_rows: int | None = None


CSV = FileType("csv", "text/csv; charset=utf-8", is_text=True)
XLSX = FileType(
    "xlsx",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    is_text=False,
    max_rows=XLSX_ROWS,
)


def write(file: IO[bytes], file_type: FileType, header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> int:
    """Write a table and return the number of rows without the header. Memory stays flat."""
    return _write_xlsx(file, header, rows) if file_type is XLSX else _write_csv(file, header, rows)


def _write_csv(file: IO[bytes], header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> int:
    # Excel reads UTF-8 only after a byte order mark; Thai would be unreadable.
    text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="", write_through=True)
    lines, count = csv_cells.writer(text), -1  # the header does not count
    try:
        for row in chain([header], rows):
            lines.writerow([escape_cell(cell) if isinstance(cell, str) else cell for cell in row])
            count += 1
    finally:
        text.detach()  # the caller closes the file
    return count


def _write_xlsx(file: IO[bytes], header: Sequence[str], rows: Iterable[Sequence[Cell]]) -> int:
    # The rows wait in a file of their own until the end, which is deleted after an error too.
    with tempfile.TemporaryDirectory() as folder:
        options = {"constant_memory": True, "default_date_format": "yyyy-mm-dd", "tmpdir": folder}
        # A text is never a formula or a link.
        options |= {"strings_to_formulas": False, "strings_to_urls": False}
        book = xlsxwriter.Workbook(file, options)
        sheet = book.add_worksheet()
        formats = {
            Decimal: book.add_format({"num_format": "#,##0.00"}),
            datetime: book.add_format({"num_format": "yyyy-mm-dd hh:mm:ss"}),
        }
        sheet.freeze_panes(1, 0)
        sheet.set_column(0, len(header) - 1, 20)
        sheet.write_row(0, 0, header, book.add_format({"bold": True}))
        count = 0
        for count, row in enumerate(rows, 1):
            for column, value in enumerate(row):
                sheet.write(count, column, value, formats.get(type(value)))
        book.close()
    return count
