"""Excel files: what a cell means, and files that are made to harm."""

import io
import sys
import zipfile
from collections.abc import Callable, Sequence
from datetime import date, datetime, time, timedelta
from typing import Any

import pytest
import xlsxwriter
from hypothesis import given, seed, strategies as st

from core.clock import BANGKOK
from core.work import decoders
from reconciliation.models import LineResult, StatementLine
from reconciliation.statements import decode_xlsx, statement_file, xlsx_files
from reconciliation.statements.lines import FileLine, FileProblems, InvalidStatementFile
from tests.conftest import Shop
from tests.reconciliation.statements.statement_files import BILLER, HEADER, csv_file, import_file

pytestmark = pytest.mark.slow

NAMES = HEADER.split(",")
ROW: dict[str, Any] = {
    "date": date(2026, 11, 21), "time": time(9, 5), "biller_id": BILLER, "reference1": "REF1",
    "reference2": "", "reference3": "", "amount": 1500.5, "type": "credit", "payer_name": "สมชาย ใจดี",
    "payer_bank_code": "004",
}  # fmt: skip
NUMBER = "reference 1 is a number, and may have lost digits: format it as text"
BREAK = "a cell contains a line break or another control character"
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


def lines_of(body: bytes) -> list[FileLine]:
    return list(statement_file.open_file(io.BytesIO(body), "day.xlsx").read_lines(FileProblems()))


def test_excel_file_is_read_as_the_same_csv_file() -> None:
    (line,) = lines_of(workbook(NAMES, row()))
    (same,) = lines_of(csv_file(f"2026-11-21,09:05:00,{BILLER},REF1,,,1500.50,credit,สมชาย ใจดี,004"))
    assert line.parsed == same.parsed
    assert (line.sha256, line.number) == (same.sha256, 2)


def test_cells_with_one_meaning_are_read() -> None:
    alike: list[dict[str, Any]] = [
        {},
        {"date": datetime(2026, 11, 21, 9, 5), "time": ""},
        {"date": datetime(2026, 11, 21, 9, 4, 59, 700_000), "time": ""},
        {"date": datetime(2569, 11, 21), "time": timedelta(hours=9, minutes=5)},
        {"amount": "1,500.50"},
        {"biller_id": int(BILLER)},
        {"payer_bank_code": 4},
        {"reference1": " REF1 "},
        {"reference1": '="REF1"'},
        {"type": "CR"},
    ]
    body = workbook(NAMES, *(row(**changes) for changes in alike))
    with zipfile.ZipFile(io.BytesIO(body)) as parts:  # as Excel keeps the result of a formula
        stored = parts.read(SHEET).replace(b"><f>", b' t="str"><f>').replace(b"<v>0</v>", b"<v>REF1</v>")
    lines = lines_of(with_part(body, SHEET, stored))
    assert [line.error for line in lines] == [""] * len(alike)
    assert {line.parsed for line in lines} == {lines[0].parsed}
    (text,) = lines_of(workbook(NAMES, row(date="21/11/2569", time="9:05:00")))
    assert text.parsed == lines[0].parsed


def test_unclear_cells_are_unreadable() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"date": 46_347}, "the date cannot be '46347'"),
        ({"date": 46_347.5, "time": ""}, "the time is missing"),
        ({"date": date(2026, 11, 21), "time": ""}, "the time is missing"),
        ({"reference1": 1234567890123456}, NUMBER),
        ({"reference1": date(2026, 2, 1)}, NUMBER),
        ({"reference1": True}, NUMBER),
        ({"amount": 1500.505}, "the amount cannot be '1500.505'"),
        ({"amount": -1500}, "the amount cannot be '-1500'"),
        ({"amount": date(2026, 2, 1)}, "the amount cannot be '2026-02-01'"),
        ({"amount": "=1/0"}, "the amount is zero or too large"),  # the result that the file has is 0
        ({"amount": ""}, "the amount cannot be ''"),
        ({"amount": 1e15}, "the amount cannot be '1e+15'"),
        ({"biller_id": 9_940_001}, "the biller id cannot be '9940001'"),
        ({"payer_name": f"Somchai\n{csv_file().decode()}"}, BREAK),
        ({"reference1": "RE\x00F"}, BREAK),
        ({"payer_name": "x" * 32_000}, "it is longer than 4096 bytes"),
    ]
    lines = lines_of(workbook(NAMES, *(row(**changes) for changes, _ in cases)))
    assert [line.error for line in lines] == [error for _, error in cases]
    assert max(len(line.raw) for line in lines) <= 4_097


def test_dates_and_texts_of_dates_in_one_file_are_unclear() -> None:
    """Excel turns 7/11/2026 into 11 July where months come first, and leaves 21/11/2026 as text."""
    errors = [line.error for line in lines_of(workbook(NAMES, row(), row(date="21/11/2026")))]
    assert len([error for error in errors if "so this one is not clear" in error]) == 2


def test_lines_above_the_header_totals_and_merged_cells_are_no_lines_of_their_own() -> None:
    body = workbook(
        ["Somtam House"], [], ["Account", "016-5-50100"], NAMES, row(), [], row(date="", time=""),
        ["Total", "", "", "", "", "", 3001.0],
    )  # fmt: skip
    assert [(line.number, line.error) for line in lines_of(body)] == [
        (5, ""), (7, "the time is missing"),
    ]  # fmt: skip


def test_columns_may_be_named_again_in_the_same_places_only() -> None:
    short = [name for name in NAMES if name != "reference3"]
    lines = [value for name, value in ROW.items() if name != "reference3"]
    assert [line.error for line in lines_of(workbook(NAMES, row(), NAMES, row()))] == ["", ""]
    for tables in ([short, lines, NAMES, row()], [NAMES, row(), short, lines]):
        with pytest.raises(InvalidStatementFile, match=r"^Line 3 names the columns again"):
            lines_of(workbook(*tables))
        with pytest.raises(InvalidStatementFile, match=r"^Line 3 names the columns again"):
            lines_of(workbook(*tables, empty=[["Notes"]]))


def test_only_one_visible_sheet_may_be_the_statement() -> None:
    table = [NAMES, row()]
    assert len(lines_of(workbook(["Notes"], statement=table, hidden=table))) == 1
    with pytest.raises(InvalidStatementFile, match=r"Several sheets .* 'Sheet1', 'october'. Keep one."):
        lines_of(workbook(*table, october=table))
    with pytest.raises(InvalidStatementFile, match="No visible sheet"):
        lines_of(workbook(["Notes"], hidden=table))
    with pytest.raises(InvalidStatementFile, match="Columns are missing"):
        lines_of(workbook(["Date", "Amount"], hidden=table))


def test_excel_file_is_imported_as_the_same_day(shop: Shop) -> None:
    body = workbook(NAMES, row(), row(payer_name="a\nb"))
    assert import_file(body).counts == {LineResult.NEW: 1, LineResult.UNREADABLE: 1}
    assert import_file(body).counts["known"] == 1
    assert StatementLine.objects.get(result=LineResult.NEW).paid_at == datetime(
        2026, 11, 21, 9, 5, tzinfo=BANGKOK
    )


# Some are 100 MB, so each is made in its test.
ATTACKS: dict[str, Callable[[], bytes]] = {
    "a cell far away": lambda: b'<row r="1048576"><c r="XFD1048576"><v>1</v></c></row><row r="1"/>',
    "a cell far to the right": lambda: b'<row r="1"><c r="A1"><v>1</v></c><c r="XFD1"><v>1</v></c></row>',
    "too many rows": lambda: b"<row><c><v>1</v></c></row>" * (decode_xlsx.MAX_ROWS + 1),
    "many cells": lambda: b"<row>" + b"<c><v>1</v></c>" * 3_000_000 + b"</row>",
    "a bomb": lambda: b"<row>" + b" " * decode_xlsx.MAX_UNPACKED_BYTES + b"</row>",
}


@pytest.mark.parametrize("name", ATTACKS)
def test_excel_file_over_the_limits_is_refused(name: str) -> None:
    body = with_part(workbook(NAMES, row()), SHEET, sheet_xml(ATTACKS[name]()))
    with pytest.raises(InvalidStatementFile, match="The Excel file is too large: at most 100,000 rows"):
        lines_of(body)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"<worksheet>",
        sheet_xml(b'<row r="99999999999"><c r="A1"/></row>'),
        sheet_xml(b'<row r="1"><c r="AAAAAAAA1" t="s"><v>99</v></c></row>'),
        b'<!DOCTYPE a [<!ENTITY b SYSTEM "file:///etc/passwd">]>'
        + sheet_xml(b"<row><c><v>&b;</v></c></row>"),
    ],
)
def test_broken_excel_file_is_refused(content: bytes) -> None:
    with pytest.raises(InvalidStatementFile):
        lines_of(with_part(workbook(NAMES, row()), SHEET, content))


def test_excel_file_whose_sizes_lie_is_refused() -> None:
    """The directory of the archive says one byte, and the part unpacks to many."""
    body = bytearray(with_part(workbook(NAMES), SHEET, sheet_xml(b" " * 1_000_000)))
    with zipfile.ZipFile(io.BytesIO(body)) as parts:
        size = parts.getinfo(SHEET).file_size.to_bytes(4, "little")
    with pytest.raises(InvalidStatementFile):
        lines_of(bytes(body).replace(size, b"\x01\x00\x00\x00"))


def test_decoder_that_takes_too_long_is_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    endless = tmp_path / "endless.py"
    endless.write_text("while True: pass")
    monkeypatch.setattr(xlsx_files, "DECODER", endless)
    monkeypatch.setattr(decoders.WORKBOOK, "timeout_seconds", 0.2)
    with pytest.raises(InvalidStatementFile, match="too large"):
        lines_of(workbook(NAMES, row()))


def test_decoder_imports_nothing_of_this_project() -> None:
    own = {"core", "config", "reconciliation", "django"}
    assert not own & {name.partition(".")[0] for name in vars(decode_xlsx) if name in sys.modules}


@seed(28)
@given(st.integers(0, 3_000), st.binary(min_size=1, max_size=8))
def test_damaged_excel_file_is_read_or_refused(place: int, damage: bytes) -> None:
    body = bytearray(workbook(NAMES, row()))
    body[place : place + len(damage)] = damage
    try:
        read = lines_of(bytes(body))
    except InvalidStatementFile as refused:
        assert str(refused)
    else:
        assert all(line.parsed or line.error for line in read)
