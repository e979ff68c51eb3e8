"""A program that prints the values of an Excel file on standard input, run by `core.work.decoders`.

It imports nothing of this project, so that it starts fast. It prints JSON lines: the names of the visible
sheets, then each row that is not blank as `[sheet, number, kinds, cells]`, or in place of all that the name
of the reason why there is none.
"""

import json
import sys
import zipfile
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from typing import Any

from python_calamine import CalamineError, CalamineWorkbook, SheetTypeEnum, SheetVisibleEnum

MAX_ROWS = 101_000  # of all visible sheets: 100,000 lines, and what stands around them
MAX_COLUMNS = 256
MAX_SHEETS = 20
MAX_UNPACKED_BYTES = 256_000_000  # 100,000 rows of ten cells have 60 MB
MAX_CHARACTERS = 4_097  # of a row; a longer one is unreadable, so its end is dropped
WORKBOOK = "xl/workbook.xml"
NO_WORKBOOK, TOO_LARGE = "no_workbook", "too_large"


def decode(file: Any) -> Iterator[Any]:
    """What is printed."""
    try:
        parts = {part.filename: part.file_size for part in zipfile.ZipFile(file).infolist()}
        if WORKBOOK not in parts:
            yield NO_WORKBOOK
            return
        if sum(parts.values()) > MAX_UNPACKED_BYTES:
            yield TOO_LARGE
            return
        file.seek(0)
        workbook = CalamineWorkbook.from_filelike(file)
        # What nobody sees in Excel is no part of a statement. Charts have no rows.
        sheets = [
            workbook.get_sheet_by_name(sheet.name)
            for sheet in workbook.sheets_metadata
            if sheet.typ == SheetTypeEnum.WorkSheet and sheet.visible == SheetVisibleEnum.Visible
        ]
    except (CalamineError, zipfile.BadZipFile, NotImplementedError, ValueError):
        yield NO_WORKBOOK
        return
    ends = [sheet.end or (0, 0) for sheet in sheets]  # from 0
    is_too_large = len(sheets) > MAX_SHEETS or sum(row + 1 for row, _ in ends) > MAX_ROWS
    if is_too_large or any(column >= MAX_COLUMNS for _, column in ends):
        yield TOO_LARGE
        return
    yield [sheet.name for sheet in sheets]
    for place, sheet in enumerate(sheets):
        for number, row in enumerate(sheet.iter_rows(), 1):
            if any(cell != "" for cell in row):
                yield [place, number, "".join(map(_kind, row)), _cut(map(_text, row))]


def _kind(value: Any) -> str:
    """The letter of `lines.Record.kinds`."""
    if isinstance(value, str):
        return "s"
    return "d" if isinstance(value, (date, time, timedelta)) else "n"


def _text(value: Any) -> str:
    """The value as Excel shows it, with up to 15 digits, and times to the second."""
    if isinstance(value, datetime):
        return str((value + timedelta(microseconds=500_000)).replace(microsecond=0))
    return format(value, ".15g") if isinstance(value, float) else str(value)


def _cut(texts: Iterator[str]) -> list[str]:
    left, kept = MAX_CHARACTERS, []
    for text in texts:
        kept.append(text[:left])
        left -= len(kept[-1])
    return kept


if __name__ == "__main__":
    for printed in decode(sys.stdin.buffer):
        sys.stdout.write(json.dumps(printed) + "\n")
