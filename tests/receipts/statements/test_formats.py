"""What the files of banks say, read from bytes that were put together by hand; what else comes is told."""

import io
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from banks.base import Unreadable
from receipts.statements import bot, plain, reading
from receipts.statements.lines import LONGEST, Complaints, Line, NotAStatement, Row
from receipts.statements.reading import Format, Occurrences
from tests.receipts.statements import cast
from tests.receipts.statements.cast import BILLER, HEADER, detail, header, trailer

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
READ = Line("credit", BILLER, "REF1", "REF2", "REF3", 150_050, NOON, "สมชาย ใจดี", "004")
CSV_READ = Line("credit", BILLER, "REF1", "REF2", "REF3", 150_050, NOON, "สมชาย ใจดี", "004")
FOUND = "1 credits of 1,500.00 THB and 0 debits of 0.00 THB"
DIFFER = f"The trailer in line 3 tells of {{}}, but the lines are {FOUND}."
CSV_LINE = f"2026-11-21,12:00:00,{BILLER},REF1,REF2,REF3,1500.50,credit,สมชาย ใจดี,004"


def read(body: bytes, form: Format | None = None) -> tuple[list[Row], list[str]]:
    """The lines of a file, and what is wrong with it."""
    complaints = Complaints()
    rows = list(reading.open_file(io.BytesIO(body), "day.txt", form).rows(complaints))
    return rows, list(complaints)


def why(line: bytes) -> str:
    (row,), _ = read(cast.bot(line))
    assert row.line is None
    return row.why


def csv_why(line: str) -> str:
    (row,), _ = read(cast.plain(line))
    assert row.line is None
    return row.why


def test_a_detail_is_read_at_the_offsets_of_the_layout() -> None:
    assert len(WRITTEN) == bot.WIDTH
    assert bot.read(WRITTEN) == READ


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"amount": "0"}, "the amount is zero"),
        ({"amount": "1500.00"}, "the amount cannot be '0000001500.00'"),
        ({"amount": "-0000000150000"[:13]}, "the amount cannot be '-000000015000'"),
        ({"amount": " " * 13}, "the amount cannot be ''"),
        ({"date": "31022026"}, "there is no time '31022026120000'"),
        ({"date": "21112569"}, "the year cannot be 2569"),
        ({"time": "250000"}, "there is no time '21112026250000'"),
        ({"time": "12:00"}, "date and time cannot be '2111202612:00'"),
        ({"sign": "X"}, "credit or debit cannot be 'X'"),
        ({"biller": "12345"}, "the biller id cannot be '12345'"),
        ({"payer_bank": "XX1"}, "the payer's bank cannot be 'XX1'"),
        ({"ref1": "A\x00B"}, "reference 1 holds control characters"),
        ({"name": "A\rB"}, "the payer's name holds control characters"),
        ({"type": "X"}, "no line begins like this one"),
    ],
)
def test_a_detail_that_cannot_be_says_why(changes: dict[str, Any], reason: str) -> None:
    with pytest.raises(Unreadable, match=f"^{reason}$".replace("(", r"\(")):
        bot.read(detail(**changes))


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        (detail()[:-1], "a line has 256 characters, this one 255"),
        (detail() + b" ", "a line has 256 characters, this one 257"),
        (detail()[:100], "a line has 256 characters, this one 100"),
        (detail() * 100, "a line has 256 characters, this one far more"),
        (detail().replace("ส".encode("cp874"), b"\xff", 1), "it holds bytes that are no character of CP874"),
        (b"=HYPERLINK(1)", "a line has 256 characters, this one 13"),
    ],
    ids=["short", "long", "broken off", "endless", "no CP874", "formula"],
)
def test_a_line_of_the_wrong_shape_says_why(line: bytes, reason: str) -> None:
    assert why(line) == reason


@pytest.mark.parametrize(
    ("body", "complaints"),
    [
        (cast.bot(detail()), []),
        (cast.bot(), []),
        (cast.bot(detail(), detail(sign="D", amount=7)), []),
        (cast.bot(detail()) + cast.bot(detail(seq="9")), []),
        (cast.bot(detail(), end=b""), ["The file ends without a trailer: it may have been cut off."]),
        (header(), ["The file ends without a trailer: it may have been cut off."]),
        (detail() + b"\r\n" + trailer(credit=150_000, credits=1), ["Line 1 has no header before it."]),
        (cast.bot(detail()) + trailer(), ["Line 4 is a trailer without a header."]),
        (cast.bot(detail(), end=trailer()[:100]), ["Line 3 is a trailer that cannot be read."]),
        (header() + b"\n" + cast.bot(detail()), ["Line 2 is a header where a trailer is missing."]),
        (
            cast.bot(detail(), end=trailer(credit=150_001, credits=1)),
            [DIFFER.format("1 credits of 1,500.01 THB and 0 debits of 0.00 THB")],
        ),
        (
            cast.bot(detail(), end=trailer(debit=150_000, debits=1)),
            [DIFFER.format("0 credits of 0.00 THB and 1 debits of 1,500.00 THB")],
        ),
    ],
)
def test_headers_and_totals_are_judged(body: bytes, complaints: list[str]) -> None:
    assert read(body)[1] == complaints


def test_of_very_many_complaints_only_the_first_are_kept() -> None:
    _, complaints = read(b"\n".join([header()] * 1_000))
    assert len(complaints) == 21
    assert complaints[-1] == "And 980 more of the kind."


def test_blank_lines_a_byte_order_mark_and_the_end_of_old_files_are_no_lines() -> None:
    body = (
        b"\xef\xbb\xbf" + header() + b"\r\n\r\n  \n" + detail() + b"\n" + trailer(credit=150_000, credits=1)
    )
    rows, complaints = read(body + b"\r\n\x1a")
    assert ([row.number for row in rows], complaints) == ([4], [])


def test_a_line_is_known_by_the_movement_it_tells_of() -> None:
    rows, _ = read(
        cast.bot(detail(seq="000002"), detail(seq="000999", teller="0001"), detail(name="S. Jaidee"))
    )
    assert len({row.digest for row in rows}) == 1
    others, _ = read(cast.bot(detail(), detail(ref1="OTHER"), detail(time="235959"), detail(amount="1")))
    assert len({row.digest for row in others}) == 4


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp874"])
def test_a_csv_file_is_read_in_any_encoding(encoding: str) -> None:
    rows, _ = read(f"{HEADER}\n{CSV_LINE}\n".encode(encoding))
    assert [row.line for row in rows] == [CSV_READ]


@pytest.mark.parametrize(
    "line",
    [
        CSV_LINE.replace("2026-11-21", "21/11/2026"),
        CSV_LINE.replace("credit", " CREDIT "),
        CSV_LINE.replace("REF1", '"REF1"'),
        CSV_LINE + ",more,cells",
    ],
)
def test_ways_to_write_the_same_are_read_alike(line: str) -> None:
    rows, _ = read(cast.plain(line))
    assert rows[0].line == CSV_READ


def test_columns_may_stand_in_any_order_among_others() -> None:
    names, cells = HEADER.split(","), CSV_LINE.split(",")
    turned = cast.plain(",".join(["x", *cells[::-1]]), header=",".join(["Branch", *names[::-1]]).upper())
    rows, _ = read(turned)
    assert rows[0].line == CSV_READ
    assert rows[0].digest == read(cast.plain(CSV_LINE))[0][0].digest


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("1500.50", "1,500.50", "the type cannot be '500.50'"),
        ("1500.50", '"1,500.50"', "an amount in baht is digits with two decimals or none"),
        ("1500.50", "=1500.50", "an amount in baht is digits with two decimals or none"),
        ("1500.50", "๑๕๐๐", "an amount in baht is digits with two decimals or none"),
        ("1500.50", "0.00", "the amount is zero or beyond all measure"),
        ("1500.50", "9" * 30, "the amount is zero or beyond all measure"),
        ("2026-11-21", "2569-11-21", "the year cannot be 2569"),
        ("2026-11-21", "11/21/2026", "there is no time '11/21/2026 12:00:00'"),
        ("2026-11-21", "21 Nov", "the date cannot be '21 Nov'"),
        ("12:00:00", "noon", "the time cannot be 'noon'"),
        ("12:00:00", "๑๒:00:00", "the time cannot be '๑๒:00:00'"),
        ("credit", "wire", "the type cannot be 'wire'"),
        (BILLER, '=CMD("calc")', """the biller id cannot be '=CMD("calc")'"""),
        (BILLER, "1E+14", "the biller id cannot be '1E+14'"),
        ("REF1", "R" * 36, "reference 1 is longer than 35 characters"),
        ("REF1", '"RE', "it is no well-formed CSV"),
        (",REF3,1500.50,credit,สมชาย ใจดี,004", "", "it has only 5 cells"),
        ("004", "4", "the payer's bank cannot be '4'"),
        ("สมชาย", "x" * 5_000, f"it is longer than {LONGEST} bytes"),
    ],
)
def test_a_csv_line_that_cannot_be_says_why(old: str, new: str, reason: str) -> None:
    assert csv_why(CSV_LINE.replace(old, new, 1)) == reason


def test_a_formula_in_a_name_is_a_name() -> None:
    rows, _ = read(cast.plain(CSV_LINE.replace("สมชาย ใจดี", "=1+1")))
    assert rows[0].line is not None
    assert rows[0].line.payer_name == "=1+1"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"", "The file is empty."),
        (b"\r\n \n\x1a", "The file is empty."),
        (b"%PDF-1.7", "It is neither"),
        ("date,time".encode("utf-16"), "It is neither"),
        (b"\x00" * 10_000, "It is neither"),
        (HEADER.replace(",", ";").encode(), "Its columns are not separated by commas."),
        (b"date,biller_id,amount\n", "Columns are missing: time, reference1, reference2, reference3, type,"),
        (HEADER.encode() + b",amount\n", "Columns are there twice: amount."),
        (HEADER.encode() + b',"\n', "The line with the names of the columns cannot be read: it is no"),
        (b"biller_id" + b"x" * 5_000, "The line with the names of the columns cannot be read: it is longer"),
    ],
)
def test_what_is_no_statement_is_refused_in_words(body: bytes, reason: str) -> None:
    with pytest.raises(NotAStatement, match=reason):
        read(body)


def test_a_bank_file_that_was_saved_again_in_utf_8_is_the_same_file() -> None:
    body = cast.bot(cast.detail(), cast.detail(name="SOMCHAI"))
    rows, complaints = read(body)
    again, more = read(body.decode("cp874").encode())
    assert [(row.line, row.digest) for row in again] == [(row.line, row.digest) for row in rows]
    assert rows[0].line
    assert list(complaints) == list(more) == []


@pytest.mark.parametrize("form", reading.FORMATS)
def test_an_empty_file_is_empty_whatever_it_is_called(form: Format) -> None:
    with pytest.raises(NotAStatement, match="file is empty"):
        read(b"\n", form)


def test_a_file_that_is_called_what_it_is_not_has_no_readable_line() -> None:
    rows, complaints = read(cast.plain(CSV_LINE), "bot")
    assert [row.line for row in rows] == [None, None]
    assert complaints


def test_a_line_of_a_hundred_megabytes_is_cut(tmp_path: Any) -> None:
    path = tmp_path / "day.txt"
    with path.open("wb") as file:
        file.write(header() + b"\r\n")
        for _ in range(100):
            file.write(b"D" * 1_000_000)
        file.write(b"\r\n" + detail() + b"\r\n")
    with path.open("rb") as stream:
        rows = list(reading.open_file(stream, path.name).rows(Complaints()))
    assert [(row.number, len(row.raw), row.line is None) for row in rows] == [
        (2, LONGEST + 1, True),
        (3, 256, False),
    ]


@given(st.binary(max_size=600) | st.binary(min_size=256, max_size=256).map(lambda tail: b"D" + tail[1:]))
@example(b"D" + b" " * 255)
def test_no_bytes_break_the_reading_of_a_detail(raw: bytes) -> None:
    try:
        assert bot.read(raw).amount > 0
    except Unreadable as unreadable:
        assert str(unreadable)


@given(st.integers(0, 255), st.binary(min_size=1, max_size=20))
def test_damage_anywhere_is_read_or_told(place: int, damage: bytes) -> None:
    raw = (detail()[:place] + damage + detail())[:256]
    try:
        bot.read(raw)
    except Unreadable as unreadable:
        assert str(unreadable)


@given(st.lists(st.text(max_size=30), min_size=10, max_size=10))
def test_no_cells_break_the_reading_of_a_csv_line(cells: list[str]) -> None:
    try:
        assert plain.read(cells).amount > 0
    except Unreadable as unreadable:
        assert str(unreadable)


@given(st.binary(max_size=2_000))
@example(b"H000001")
@example(b"T000001")
def test_no_file_breaks_the_reading(body: bytes) -> None:
    for start in (b"", header() + b"\n", HEADER.encode() + b"\n"):
        try:
            rows, _ = read(start + body)
        except NotAStatement as refused:
            assert str(refused)
        else:
            assert all(row.line or row.why for row in rows)


@given(st.lists(st.sampled_from([f"{number:064x}" for number in range(5)] + ["0" * 7 + "8" + "0" * 56])))
def test_the_same_line_is_counted_however_often_it_comes(digests: list[str]) -> None:
    occurrences, seen = Occurrences(), dict[str, int]()
    for digest in digests:
        occurrences.look(digest)
    for digest in digests:
        seen[digest] = seen.get(digest, 0) + 1
        assert occurrences.count(digest) == seen[digest]
