"""Parsing of the statement formats, and their errors."""

import io
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import example, given, strategies as st

from banks.base import ReportedTransaction, UnreadableMessage
from reconciliation.statements import bot_format, statement_file
from reconciliation.statements.lines import (
    MAX_LINE_BYTES,
    FileLine,
    FileProblems,
    InvalidStatementFile,
)
from reconciliation.statements.statement_file import StatementFormat
from tests.reconciliation.statements import statement_files
from tests.reconciliation.statements.statement_files import BILLER, HEADER, detail, header, trailer

NOON = datetime(2026, 11, 21, 5, 0, tzinfo=UTC)
# Written out once in full, so that nothing here hangs on the function that fills in the others.
WRITTEN = (
    "D0000020140016550100"
    "21112026"
    "120000" + f"{'สมชาย ใจดี':<50}" + f"{'REF1':<20}" + f"{'REF2':<20}" + f"{'REF3':<20}"
    "0111"
    "0222"
    "C"
    "TRF"
    "0000000"
    "0000000150050" + " " * 20 + "099400016550100" + " " * 32 + "004" + " " * 10
).encode("cp874")
READ = ReportedTransaction(
    "", "credit", BILLER, "REF1", "REF2", "REF3", 150_050, NOON, "สมชาย ใจดี", "004", payer_account=""
)
FOUND = "1 credits of 1,500.00 THB and 0 debits of 0.00 THB"
DIFFER = f"The trailer in line 3 states {{}}, but the lines are {FOUND}."
NOT_CLEAR = "the file does not write all dates with the day first, so this one is not clear"
BREAK = "a cell contains a line break or another control character"
CSV_LINE = f"2026-11-21,12:00:00,{BILLER},REF1,REF2,REF3,1500.50,credit,สมชาย ใจดี,004"


def read(body: bytes, form: StatementFormat | None = None) -> tuple[list[FileLine], list[str]]:
    """Return the lines and the problems of a file."""
    problems = FileProblems()
    rows = list(statement_file.open_file(io.BytesIO(body), "day.txt", form).read_lines(problems))
    return rows, list(problems)


def why(line: bytes) -> str:
    (row,), _ = read(statement_files.bot_file(line))
    assert row.parsed is None
    return row.error


def csv_why(line: str) -> str:
    (row,), _ = read(statement_files.csv_file(line))
    assert row.parsed is None
    return row.error


def test_bot_detail_is_parsed_at_the_layout_offsets() -> None:
    assert len(WRITTEN) == bot_format.LINE_WIDTH
    assert bot_format.parse_detail(WRITTEN) == READ


def test_invalid_bot_detail_has_an_error() -> None:
    for changes, reason in [
        ({"amount": "0"}, "the amount is zero"),
        ({"amount": "1500.00"}, "the amount cannot be '0000001500.00'"),
        ({"amount": "-0000000150000"[:13]}, "the amount cannot be '-000000015000'"),
        ({"amount": " " * 13}, "the amount cannot be ''"),
        ({"date": "31022026"}, "there is no time '31022026120000'"),
        ({"date": "21112400"}, "the year cannot be 2400"),
        ({"time": "250000"}, "there is no time '21112026250000'"),
        ({"time": "12:00"}, "date and time cannot be '2111202612:00'"),
        ({"sign": "X"}, "credit or debit cannot be 'X'"),
        ({"sign": "X", "amount": "0"}, "credit or debit cannot be 'X'"),
        ({"biller": "12345"}, "the biller id cannot be '12345'"),
        ({"payer_bank": "XX1"}, "the payer's bank cannot be 'XX1'"),
        ({"ref1": "A\x00B"}, "reference 1 contains control characters"),
        ({"name": "A\rB"}, "the payer's name contains control characters"),
        ({"type": "X"}, "no line begins like this one"),
    ]:
        with pytest.raises(UnreadableMessage, match=f"^{reason}$".replace("(", r"\(")):
            bot_format.parse_detail(detail(**changes))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (detail()[:-1], "a line has 256 characters, this one 255"),
        (detail() + b" ", "a line has 256 characters, this one 257"),
        (detail()[:100], "a line has 256 characters, this one 100"),
        (detail() * 100, "a line has 256 characters, this one far more"),
        (detail().replace("ส".encode("cp874"), b"\xff", 1), "it contains bytes that are not valid CP874"),
        (b"=HYPERLINK(1)", "a line has 256 characters, this one 13"),
    ],
    ids=["short", "long", "broken off", "endless", "no CP874", "formula"],
)
def test_malformed_bot_line_has_an_error(line: bytes, reason: str) -> None:
    assert why(line) == reason


def test_headers_and_trailer_totals_are_checked() -> None:
    for body, problems in [
        (statement_files.bot_file(detail()), []),
        (statement_files.bot_file(), []),
        (statement_files.bot_file(detail(), detail(sign="D", amount=7)), []),
        (statement_files.bot_file(detail()) + statement_files.bot_file(detail(seq="9")), []),
        (
            statement_files.bot_file(detail(), end=b""),
            ["The file ends without a trailer: it may have been cut off."],
        ),
        (header(), ["The file ends without a trailer: it may have been cut off."]),
        (detail() + b"\r\n" + trailer(credit=150_000, credits=1), ["Line 1 has no header before it."]),
        (statement_files.bot_file(detail()) + trailer(), ["Line 4 is a trailer without a header."]),
        (
            statement_files.bot_file(detail(), end=trailer()[:100]),
            ["Line 3 is a trailer that cannot be read."],
        ),
        (
            header() + b"\n" + statement_files.bot_file(detail()),
            ["Line 2 is a header where a trailer is missing."],
        ),
        (
            statement_files.bot_file(detail(), end=trailer(credit=150_001, credits=1)),
            [DIFFER.format("1 credits of 1,500.01 THB and 0 debits of 0.00 THB")],
        ),
        (
            statement_files.bot_file(detail(), end=trailer(debit=150_000, debits=1)),
            [DIFFER.format("0 credits of 0.00 THB and 1 debits of 1,500.00 THB")],
        ),
    ]:
        assert read(body)[1] == problems


def test_stored_file_problems_are_limited() -> None:
    _, problems = read(b"\n".join([header()] * 1_000))
    assert len(problems) == 21
    assert problems[-1] == "And 980 more of the kind."


def test_blank_lines_byte_order_mark_and_ctrl_z_are_ignored() -> None:
    body = (
        b"\xef\xbb\xbf" + header() + b"\r\n\r\n  \n" + detail() + b"\n" + trailer(credit=150_000, credits=1)
    )
    rows, problems = read(body + b"\r\n\x1a")
    assert ([row.number for row in rows], problems) == ([4], [])


def test_line_digest_depends_only_on_the_reported_bank_transaction() -> None:
    rows, _ = read(
        statement_files.bot_file(
            detail(seq="000002"), detail(seq="000999", teller="0001"), detail(name="S. Jaidee")
        )
    )
    assert len({row.sha256 for row in rows}) == 1
    others, _ = read(
        statement_files.bot_file(detail(), detail(ref1="OTHER"), detail(time="235959"), detail(amount="1"))
    )
    assert len({row.sha256 for row in others}) == 4


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp874"])
def test_csv_statement_is_read_in_any_encoding(encoding: str) -> None:
    rows, _ = read(f"{HEADER}\n{CSV_LINE}\n".encode(encoding))
    assert [row.parsed for row in rows] == [READ]


@pytest.mark.parametrize(
    "line",
    [
        CSV_LINE.replace("2026-11-21", "21/11/2026"),
        CSV_LINE.replace("credit", " CREDIT "),
        CSV_LINE.replace("REF1", '"REF1"'),
        CSV_LINE + ",more,cells",
        CSV_LINE.replace("1500.50", '"1,500.50"'),
        CSV_LINE.replace("1500.50", "1500.5"),
        CSV_LINE.replace("1500.50", "฿1500.50 "),
        CSV_LINE.replace("1500.50", "๑๕๐๐.๕๐"),
        CSV_LINE.replace("2026-11-21", "2569-11-21"),
        CSV_LINE.replace("2026-11-21", "21 พ.ย. 2569"),
        CSV_LINE.replace("2026-11-21", "21-Nov-2026"),
        CSV_LINE.replace("2026-11-21,12:00:00", "2026-11-21 12:00:00,"),
        CSV_LINE.replace("12:00:00", "12:00:00 PM"),
        CSV_LINE.replace("credit", "CR"),
        CSV_LINE.replace("REF1", '"=""REF1"""'),
        CSV_LINE.replace("REF1", '="REF1"'),
        CSV_LINE.replace(",004", ",4"),
    ],
)
def test_equivalent_csv_lines_are_parsed_alike(line: str) -> None:
    rows, _ = read(statement_files.csv_file(line))
    assert rows[0].parsed == READ


def test_csv_columns_may_be_in_any_order() -> None:
    names, cells = HEADER.split(","), CSV_LINE.split(",")
    turned = statement_files.csv_file(
        ",".join(["x", *cells[::-1]]), header=",".join(["Branch", *names[::-1]]).upper()
    )
    rows, _ = read(turned)
    assert rows[0].parsed == READ
    assert rows[0].sha256 == read(statement_files.csv_file(CSV_LINE))[0][0].sha256


def test_invalid_csv_line_has_an_error() -> None:
    for old, new, reason in [
        ("1500.50", "1,500.50", "the type cannot be '500.50'"),
        ("1500.50", "=1500.50", "the amount cannot be '=1500.50'"),
        ("1500.50", "-1500.50", "the amount cannot be '-1500.50'"),
        ("1500.50", "(1500.50)", "the amount cannot be '(1500.50)'"),
        ("1500.50", '"1.500,50"', "the amount cannot be '1.500,50'"),
        ("1500.50", '"1,50"', "the amount cannot be '1,50'"),
        ("1500.50", "1500.505", "the amount cannot be '1500.505'"),
        ("1500.50", "1.5E+3", "the amount cannot be '1.5E+3'"),
        ("1500.50", "0.00", "the amount is zero or too large"),
        ("1500.50", "9" * 30, "the amount is zero or too large"),
        ("2026-11-21", "2400-11-21", "the year cannot be 2400"),
        ("2026-11-21", "31/02/2026", "there is no time '31/02/2026 12:00:00'"),
        ("2026-11-21", "11/21/2026", NOT_CLEAR),
        ("2026-11-21", "3/4/26", "the date cannot be '3/4/26'"),
        ("2026-11-21", "2026-11-21 11:59:59", "the date has another time than the time"),
        ("2026-11-21,12:00:00", "2026-11-21,", "the time is missing"),
        ("2026-11-21,12:00:00", "2026-11-21,9:05", "the time cannot be '9:05'"),
        ("2026-11-21,12:00:00", "2026-11-21,13:05:00 PM", "the time cannot be '13:05:00 PM'"),
        ("2026-11-21", "21 Nov", "the date cannot be '21 Nov'"),
        ("12:00:00", "noon", "the time cannot be 'noon'"),
        ("credit", "wire", "the type cannot be 'wire'"),
        ("credit", "D", "the type cannot be 'D'"),
        (BILLER, '=CMD("calc")', """the biller id cannot be '=CMD("calc")'"""),
        (BILLER, "1E+14", "the biller id cannot be '1E+14'"),
        ("REF1", "R" * 36, "reference 1 is longer than 35 characters"),
        ("REF1", "1.23457E+14", "reference 1 is a number, and may have lost digits: format it as text"),
        (",REF3,1500.50,credit,สมชาย ใจดี,004", "", "it has only 5 cells"),
        ("004", "0004", "the payer's bank cannot be '0004'"),
        ("สมชาย", "x" * 5_000, f"it is longer than {MAX_LINE_BYTES} bytes"),
    ]:
        assert csv_why(CSV_LINE.replace(old, new, 1)) == reason


def test_formula_in_a_csv_cell_is_plain_text() -> None:
    rows, _ = read(statement_files.csv_file(CSV_LINE.replace("สมชาย ใจดี", "=1+1")))
    assert rows[0].parsed is not None
    assert rows[0].parsed.payer_name == "=1+1"


@pytest.mark.slow
def test_invalid_statement_file_is_refused_with_a_reason() -> None:
    for body, reason in [
        (b"", "The file is empty."),
        (b"\r\n \n\x1a", "The file is empty."),
        (b"%PDF-1.7", "It is neither"),
        (b"PK\x03\x04", r"It is not an Excel file \(.xlsx\), or it is broken."),
        (
            bytes.fromhex("d0cf11e0a1b11ae1"),
            r"It is an Excel file of the old kind \(.xls\), or has a password.",
        ),
        ("date,time".encode("utf-16"), r"Columns are missing: biller_id, reference1, amount, type \("),
        (b"\x00" * 10_000, "It is neither"),
        (HEADER.replace(",", "|").encode(), "It is neither"),
        (
            b"date,biller_id,amount\n",
            r'Columns are missing: reference1, type \("credit/debit", with credit or debit in each line\).',
        ),
        (HEADER.encode() + b",amount\n", "Columns are duplicated: amount."),
        (HEADER.replace("reference1", "Ref.1,ref 1").encode(), "Columns are duplicated: reference1."),
        (HEADER.encode() + b',"\n"\n', "Line 1 has a line break, or another control character, in a cell."),
        (b'"Somtam\n' + HEADER.encode() + b'\n"\n' + HEADER.encode(), "Line 1 has a line break"),
        (b"biller_id" + b"x" * 70_000, "The record that begins in line 1 is longer than 65536 characters."),
    ]:
        with pytest.raises(InvalidStatementFile, match=reason):
            read(body)


def test_bot_file_saved_as_utf_8_is_the_same_file() -> None:
    body = statement_files.bot_file(statement_files.detail(), statement_files.detail(name="SOMCHAI"))
    rows, problems = read(body)
    again, more = read(body.decode("cp874").encode())
    assert [(row.parsed, row.sha256) for row in again] == [(row.parsed, row.sha256) for row in rows]
    assert rows[0].parsed
    assert list(problems) == list(more) == []


@pytest.mark.parametrize("form", statement_file.FORMATS)
def test_empty_statement_file_is_refused_in_any_format(form: StatementFormat) -> None:
    with pytest.raises(InvalidStatementFile, match="file is empty"):
        read(b"\n", form)


def test_statement_file_in_another_format_than_requested_is_unreadable() -> None:
    rows, problems = read(statement_files.csv_file(CSV_LINE), "bot")
    assert [row.parsed for row in rows] == [None, None]
    assert problems


@pytest.mark.slow
def test_very_long_statement_line_is_cut(tmp_path: Any) -> None:
    path = tmp_path / "day.txt"
    with path.open("wb") as file:
        file.write(header() + b"\r\n")
        for _ in range(100):
            file.write(b"D" * 1_000_000)
        file.write(b"\r\n" + detail() + b"\r\n")
    with path.open("rb") as stream:
        rows = list(statement_file.open_file(stream, path.name).read_lines(FileProblems()))
    assert [(row.number, len(row.raw), row.parsed is None) for row in rows] == [
        (2, MAX_LINE_BYTES + 1, True),
        (3, 256, False),
    ]


@pytest.mark.parametrize("head", [header(), HEADER.encode()])
def test_file_with_too_many_lines_is_refused(head: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    assert statement_file.MAX_LINES == 1_000_000
    monkeypatch.setattr(statement_file, "MAX_LINES", 3)
    file = statement_file.open_file(io.BytesIO(b"\n".join([head, b"x", b"y", b"z"])), "day.txt")
    assert file.read_contents().line_count == len(list(file.read_lines(FileProblems()))) == 3
    file = statement_file.open_file(io.BytesIO(b"\n".join([head, b"x", b"y", b"z", b"z"])), "day.txt")
    for reading in (file.read_contents, lambda: list(file.read_lines(FileProblems()))):
        with pytest.raises(InvalidStatementFile, match="has more than 3 lines"):
            reading()


@given(st.binary(max_size=600) | st.binary(min_size=256, max_size=256).map(lambda tail: b"D" + tail[1:]))
@example(b"D" + b" " * 255)
def test_parsing_a_bot_detail_survives_any_bytes(raw: bytes) -> None:
    try:
        assert bot_format.parse_detail(raw).amount > 0
    except UnreadableMessage as unreadable:
        assert str(unreadable)


@given(st.integers(0, 255), st.binary(min_size=1, max_size=20))
def test_damaged_bot_detail_is_parsed_or_unreadable(place: int, damage: bytes) -> None:
    raw = (detail()[:place] + damage + detail())[:256]
    try:
        bot_format.parse_detail(raw)
    except UnreadableMessage as unreadable:
        assert str(unreadable)


@given(st.binary(max_size=2_000))
@example(b"H000001")
@example(b"T000001")
def test_arbitrary_statement_file_is_read_or_refused(body: bytes) -> None:
    for start in (b"", header() + b"\n", HEADER.encode() + b"\n"):
        try:
            rows, _ = read(start + body)
        except InvalidStatementFile as refused:
            assert str(refused)
        else:
            assert all(row.parsed or row.error for row in rows)


@given(st.lists(st.sampled_from("ABC"), max_size=8))
def test_occurrences_of_equal_lines_are_counted(references: list[str]) -> None:
    rows, _ = read(statement_files.bot_file(*[detail(ref1=each) for each in references]))
    counted = [references[: place + 1].count(each) for place, each in enumerate(references)]
    assert [row.occurrence for row in rows] == counted
