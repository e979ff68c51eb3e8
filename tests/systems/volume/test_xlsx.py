"""A large Excel file."""

import io
from collections.abc import Sequence
from typing import Any

import pytest

from core.work import decoders
from reconciliation.statements import xlsx_files
from tests.reconciliation.statements.test_xlsx import SHEET, sheet_xml, with_part, workbook


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
