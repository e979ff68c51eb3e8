"""Files of people and spreadsheets: where records begin and end, their encoding, and what is not clear."""

import io
import random
from typing import Any

import pytest
from hypothesis import given, seed, strategies as st

from core import clock
from core.clock import BANGKOK
from core.thai import thaiqr
from reconciliation.models import BankTransaction, LineResult, StatementLine
from reconciliation.statements import statement_file
from reconciliation.statements.lines import FileLine, FileProblems, InvalidStatementFile
from reconciliation.statements.text_files import MAX_RECORD_CHARACTERS
from tests.conftest import Shop
from tests.reconciliation.statements.statement_files import (
    BILLER,
    HEADER,
    bot_file,
    csv_file,
    detail,
    import_file,
)

LINE = f"2026-11-21,12:00:00,{BILLER},REF1,,,1500.50,credit,สมชาย ใจดี,004"
BREAK = "a cell contains a line break or another control character"


def lines_of(body: bytes) -> list[FileLine]:
    return list(statement_file.open_file(io.BytesIO(body), "day.csv").read_lines(FileProblems()))


def errors_of(body: bytes) -> list[str]:
    return [line.error for line in lines_of(body)]


def line_of(code: dict[str, Any], **changes: str) -> str:
    """The line of a credit that pays a code."""
    parsed, now = thaiqr.parse(code["qr_data"]), clock.now().astimezone(BANGKOK)
    cells = {
        "date": f"{now:%Y-%m-%d}", "time": f"{now:%H:%M:%S}", "biller": str(parsed.biller_id),
        "reference1": str(parsed.reference1), "reference2": "", "reference3": "",
        "amount": f"{code['amount'] // 100}.00", "type": "credit", "name": "Somchai", "bank": "004",
    } | changes  # fmt: skip
    return ",".join(cells.values())


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
def test_record_in_a_text_cell_credits_nothing(shop: Shop, newline: str) -> None:
    first, hidden = shop.qr_code(), shop.qr_code(amount=5_000_00)
    cell = f'"Somchai{newline}{line_of(hidden)}{newline}"'
    import_file(csv_file(line_of(first, name=cell, bank="")))
    assert shop.payment(hidden["payment_id"])["status"] == "pending"
    (line,) = StatementLine.objects.all()
    assert (line.result, line.error, line.line_number) == (LineResult.UNREADABLE, BREAK, 2)
    assert not BankTransaction.objects.exists()


@pytest.mark.parametrize("quote", ["", '"'])  # with quotes, only one separator fits
@pytest.mark.parametrize(("separator", "other"), [(";", ","), (";", "\t"), ("\t", ","), ("\t", ";")])
def test_table_in_text_cells_of_another_separator_refuses_the_file(
    shop: Shop, separator: str, other: str, quote: str
) -> None:
    victim = shop.qr_code(amount=5_000_00)
    day, time, biller, reference, _, _, amount, kind, *_ = line_of(victim).split(",")
    hidden = [
        "x,date,biller_id,reference1,amount,type,y",
        f"x,{day} {time},{biller},{reference},{amount},{kind},y",
    ]
    rows = [
        [*HEADER.split(","), "memo"],
        *([*line_of(shop.qr_code()).split(","), text.replace(",", other)] for text in [*hidden, ""]),
    ]
    body = "\n".join(separator.join(f"{quote}{cell}{quote}" for cell in row) for row in rows)
    if quote:
        tab = BREAK if other == "\t" else ""
        assert errors_of(body.encode()) == [tab, tab, ""]
        return
    with pytest.raises(InvalidStatementFile, match=r"^Line 1 has names .*, and line 2 between"):
        import_file(body.encode())
    assert shop.payment(victim["payment_id"])["status"] == "pending"
    assert not StatementLine.objects.exists()


def test_table_of_another_separator_does_not_take_the_place_of_an_incomplete_one() -> None:
    body = "date;time;biller_id;reference1;sum;memo\n1;2;3;4;5;x,date,biller_id,reference1,amount,type"
    with pytest.raises(InvalidStatementFile, match=r"^Line 1 has names .* semicolons, and line 2 between"):
        lines_of(body.encode())


ENDS = "^Line 2 ends in another way than the lines above it"
QUOTE = "^Line 2 has a quote that is not closed, or not doubled inside a cell"
AGAIN = "^Line 4 names the columns again, but otherwise than line 1"
ABOVE = "^Line 2 is a line of the statement, but stands above the names of the columns"
NAMED = LINE.replace("สมชาย ใจดี", "{}")
SHORT = HEADER.replace("reference3,", "")
SHORT_LINE = LINE.replace("REF1,,", "REF1,")


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ([HEADER, NAMED.format(f"x\r{LINE}")], ENDS),
        ([HEADER, NAMED.format(f"x\n{LINE}")], ENDS),
        ([HEADER, NAMED.format(f'"x"\n{LINE},""')], ENDS),
        ([HEADER, NAMED.format(f'"x"y\r\n{LINE},""')], QUOTE),
        ([HEADER, NAMED.format('"Somchai "Lek" Jaidee"')], QUOTE),
        ([HEADER, NAMED.format('"Somchai'), LINE], QUOTE),
        ([SHORT, SHORT_LINE, SHORT_LINE, HEADER, LINE], AGAIN),
        ([HEADER, LINE, LINE, SHORT, SHORT_LINE], AGAIN),
        ([HEADER, LINE, LINE, HEADER.replace("reference1,reference2", "reference2,reference1"), LINE], AGAIN),
        (["Somtam House", LINE, HEADER, LINE], ABOVE),
    ],
)  # fmt: skip
def test_file_that_can_be_read_in_two_ways_is_refused(lines: list[str], reason: str) -> None:
    with pytest.raises(InvalidStatementFile, match=reason):
        lines_of("\r\n".join([*lines, ""]).encode())


def test_columns_that_are_named_anew_after_many_lines_refuse_the_file() -> None:
    with pytest.raises(InvalidStatementFile, match=r"^Line 102 names the columns again"):
        lines_of(csv_file(*[LINE] * 100, SHORT, SHORT_LINE))


def test_first_line_of_names_with_a_column_missing_refuses_the_file() -> None:
    with pytest.raises(InvalidStatementFile, match=r"^Columns are missing: type"):
        lines_of(csv_file(LINE, HEADER, LINE, header=HEADER.replace("type", "kind")))


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\r\r\n"])
def test_any_one_kind_of_line_end_is_read(end: str) -> None:
    pages = [HEADER, LINE, "", f"{HEADER.upper()},", LINE, "\x1a"]
    assert errors_of(end.join(pages).encode()) == ["", ""]


@pytest.mark.parametrize("sign", ["\x00", "\x0b", "\x1b", "\x7f", "\x85", "\u2028"])
def test_control_character_in_any_cell_makes_the_record_unreadable(sign: str) -> None:
    table = csv_file(f"{LINE},extra{sign}cell", LINE, header=HEADER + ",note")
    assert errors_of(table) == [BREAK, ""]


def test_records_keep_the_number_of_their_first_line() -> None:
    body = csv_file(LINE, "", f'"2026-11-21\n",12:00:00,{LINE[20:]}', LINE)
    assert [(line.number, line.parsed is None) for line in lines_of(body)] == [
        (2, False), (4, True), (6, False),
    ]  # fmt: skip


def test_quote_that_never_ends_hides_no_line_behind_it() -> None:
    with pytest.raises(InvalidStatementFile, match=r"^Line 2 has a quote that is not closed"):
        lines_of(csv_file(LINE.replace("REF1", '"REF1'), *[LINE] * 3))
    with pytest.raises(InvalidStatementFile, match="record that begins in line 2 is longer"):
        lines_of(csv_file(LINE.replace("REF1", '"REF1'), *[LINE] * (MAX_RECORD_CHARACTERS // len(LINE) + 1)))


def test_bot_line_with_line_breaks_inside_is_unreadable() -> None:
    hidden = detail(ref1="HIDDEN")
    for inner in (b"\n", b"\r", b"\r\n", b"\x85"):
        body = bot_file(detail()[:200] + inner + hidden)
        read = [line.parsed.reference1 for line in lines_of(body) if line.parsed]
        assert read == ([] if inner in (b"\r", b"\x85") else ["HIDDEN"])  # on a line of its own it is one


def test_one_broken_byte_in_a_utf_8_file_is_one_bad_line() -> None:
    good = [LINE.replace("REF1", f"REF{number}") for number in range(5)]
    body = csv_file(*good).replace("สมชาย".encode(), b"\xe0\xb8\xaa\xe0\xb8\xff\xe0\xb8\x8a", 1)
    first, *others = lines_of(body)
    assert first.error == "it contains bytes that are not valid UTF-8"
    assert [line.parsed and line.parsed.payer_name for line in others] == ["สมชาย ใจดี"] * 4


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp874", "utf-16", "utf-16-le", "utf-16-be"])
def test_encoding_is_found_by_the_whole_file(encoding: str) -> None:
    text = csv_file(*[LINE.replace(",", "\t")] * 3, header=HEADER.replace(",", "\t")).decode()
    marks = {"utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}
    read = lines_of(marks.get(encoding, b"") + text.encode(encoding))
    assert {line.parsed and line.parsed.payer_name for line in read} == {"สมชาย ใจดี"}


def test_broken_byte_in_a_cp874_file_is_one_bad_line() -> None:
    body = csv_file(LINE, LINE).decode().encode("cp874").replace(b"004", b"\xff04", 1)
    assert errors_of(body) == ["it contains bytes that are not valid CP874", ""]


def test_lines_before_the_header_and_totals_after_the_lines_are_no_lines() -> None:
    header = "วันที่,เวลา,Biller ID,Ref. 1,จำนวนเงิน (บาท),CR/DR"
    body = "\n".join([
        "Somtam House,,,,,", "Account,0994000165,,,,", header, f'7/11/2569,9:05:00,{BILLER},R1,"1,500.00",CR',
        ",,,,,", header, f'8/11/2569,9:05:00,{BILLER},R2,2.5,DR', 'รวมทั้งสิ้น,,,,"1,502.50",', "\x1a",
    ])  # fmt: skip
    read = [line.parsed for line in lines_of(body.encode("cp874"))]
    assert [(each.reference1, each.amount, each.kind, f"{each.paid_at:%d %b}") for each in read if each] == [
        ("R1", 150_000, "credit", "07 Nov"),
        ("R2", 250, "reversal", "08 Nov"),
    ]
    assert len(read) == 2


def test_row_without_a_reference_is_a_total_only_if_it_says_so() -> None:
    assert len(errors_of(csv_file(LINE, ",,,,,,1500.50,,,"))) == 2


@pytest.mark.parametrize(
    "dates",
    [
        ("7/11/2026", "11/21/2026"),  # the second one has its month first
        ("7/11/2026", "2026-11-08"),  # a spreadsheet has rewritten one of them
    ],
)
def test_dates_in_numbers_are_unclear_where_the_file_mixes_their_order(dates: tuple[str, str]) -> None:
    first, *_ = errors_of(csv_file(*(LINE.replace("2026-11-21", date) for date in dates)))
    assert first.startswith("the file does not write all dates with the day first")
    assert errors_of(csv_file(LINE.replace("2026-11-21", "7/11/2026"))) == [""]


def test_comma_of_an_amount_is_unclear_beside_decimal_commas() -> None:
    body = csv_file(LINE.replace("1500.50", '"1,500"'), LINE.replace("1500.50", '"2.500,00"'))
    assert errors_of(body) == ["the amount cannot be '1,500'", "the amount cannot be '2.500,00'"]


@pytest.mark.slow
def test_same_day_from_a_spreadsheet_adds_no_line(shop: Shop) -> None:
    lines = [line_of(shop.qr_code(), reference2="0812345678"), line_of(shop.qr_code(), reference1="0012345")]
    import_file(csv_file(*lines))
    rewritten = [
        line.replace("0812345678", "812345678").replace("0012345", "12345").replace(BILLER, BILLER[1:])
        for line in lines
    ]
    assert import_file(csv_file(*rewritten)).counts == {"known": 2}
    short = HEADER.replace("reference2,reference3,", "")
    without = [",".join([*line.split(",")[:4], *line.split(",")[6:]]) for line in rewritten]
    assert import_file(csv_file(*without, header=short)).counts == {"known": 2}


CELLS = st.sampled_from([
    "", " ", "2026-11-21", "7/11/2026", "11/21/2026", "12:00:00", BILLER, BILLER[1:], "REF1", "1500.50",
    '"1,500.00"', '"1.500,00"', "credit", "CR", "debit", "สมชาย", "004", '"', '""', "\n", "\r", "\x00",
    "\ufeff",
    "'=1", '="REF1"', "total", ";", "\t", ",", "x" * 300, LINE, f'"{LINE}\n{LINE}"', HEADER, "\x1a", "\udcff",
])  # fmt: skip


@seed(28)
@given(st.lists(CELLS, max_size=60), st.sampled_from([",", ";", "\t", "\n"]), st.integers(0, 2**32))
def test_any_table_is_refused_or_every_credit_is_a_record_of_its_own(
    cells: list[str], glue: str, number: int
) -> None:
    """What a spreadsheet shows as one row is one line: no credit comes from inside a cell."""
    shuffled = [*cells]
    random.Random(number).shuffle(shuffled)
    text = f"{HEADER}\n{glue.join(cells)}\n{','.join(shuffled)}\n{LINE}\n"
    body = text.encode(errors="surrogateescape")
    try:
        read = lines_of(body)
    except InvalidStatementFile as refused:
        assert str(refused)
        return
    for line in read:
        assert line.parsed or line.error
        if line.parsed:
            assert b"\n" not in line.raw
            assert b"\r" not in line.raw
            assert line.raw.count(line.parsed.reference1.encode()) >= 1
