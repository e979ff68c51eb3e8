"""A large Excel file."""

import io
import zipfile
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from typing import Any

import pytest
import xlsxwriter

from core import decoders
from reconciliation.statements import xlsx_files
from tests.reconciliation.statements.statement_files import BILLER

ROW: dict[str, Any] = {
    "date": date(2026, 11, 21), "time": time(9, 5), "biller_id": BILLER, "reference1": "REF1",
    "reference2": "", "reference3": "", "amount": 1500.5, "type": "credit", "payer_name": "สมชาย ใจดี",
    "payer_bank_code": "004",
}  # fmt: skip
SHEET = "xl/worksheets/sheet1.xml"


def row(**changes: Any) -> list[Any]:
    return list((ROW | changes).values())


def workbook(*rows: Sequence[Any], **sheets: Sequence[Sequence[Any]]) -> bytes:
    """An Excel file. Texts that begin with `=` are formulas."""
    file = io.BytesIO()
    with xlsxwriter.Workbook(file) as book:
        formats = {
            datetime: book.add_format({"num_format": "d/m/yyyy hh:mm:ss"}),
            date: book.add_format({"num_format": "d/m/yyyy"}),
            time: book.add_format({"num_format": "h:mm:ss"}),
            timedelta: book.add_format({"num_format": "[h]:mm:ss"}),
        }
        for name, lines in ({"Sheet1": rows} | sheets).items():
            sheet = book.add_worksheet(name)
            for number, cells in enumerate(lines):
                for place, cell in enumerate(cells):
                    sheet.write(number, place, cell, formats.get(type(cell)))
            if name == "hidden":
                sheet.hide()
    return file.getvalue()


def with_part(body: bytes, name: str, content: bytes) -> bytes:
    """The file with another content of a part."""
    changed = io.BytesIO()
    with (
        zipfile.ZipFile(io.BytesIO(body)) as old,
        zipfile.ZipFile(changed, "w", zipfile.ZIP_DEFLATED) as new,
    ):
        for each in old.namelist():
            new.writestr(each, content if each == name else old.read(each))
    return changed.getvalue()


def sheet_xml(rows: bytes) -> bytes:
    space = b"http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    return b'<worksheet xmlns="%s"><sheetData>%s</sheetData></worksheet>' % (space, rows)


@pytest.mark.slow
def test_excel_file_of_a_hundred_thousand_lines_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    """With twice the columns that a bank writes, and texts that all differ, within its memory."""
    monkeypatch.setattr(decoders.WORKBOOK, "timeout_seconds", 600.0)  # a busy machine may be slow
    cells = [[f"{number}-{place} ข้อความ" for place in range(20)] for number in range(100_000)]
    body = with_part(workbook(), SHEET, sheet_xml(b"".join(map(inline, cells))))
    ((_, records),) = xlsx_files.read_sheets(io.BytesIO(body))
    assert sum(len(record.cells) for record in records()) == 20 * 100_000


def inline(cells: Sequence[Any]) -> bytes:
    """A row of texts."""
    written = "".join(f'<c t="inlineStr"><is><t>{cell}</t></is></c>' for cell in cells)
    return f"<row>{written}</row>".encode()
