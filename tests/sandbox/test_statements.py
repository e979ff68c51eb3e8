"""Statement files of the sandbox bank, byte for byte."""

import csv
import io
from datetime import UTC, date, datetime, timedelta
from typing import Any
from urllib.parse import urlencode

import pytest
import time_machine

from reconciliation.statements import statement_file
from reconciliation.statements.lines import FileProblems
from sandbox import statements
from sandbox.models import SandboxPayment
from tests.conftest import Shop
from tests.sandbox.conftest import BILLER, REFERENCE, error_of, pay, send_signed

pytestmark = pytest.mark.django_db
# 10:04:05.999 in Bangkok.
NOW = datetime(2026, 11, 21, 3, 4, 5, 999_000, UTC)
TODAY = {"biller_id": BILLER, "date": "2026-11-21"}
START, DAY = "998" + "5000000001", "21112026"


@pytest.fixture(autouse=True)
def frozen_time() -> Any:
    with time_machine.travel(NOW, tick=False) as traveller:
        yield traveller


def pay_as_somchai(scenario: str = "paid", paid_at: datetime = NOW, **code: Any) -> SandboxPayment:
    payment = pay(scenario, paid_at=paid_at, **code)
    SandboxPayment.objects.filter(reference1=payment.reference1).update(
        payer_name="สมชาย ใจดี", payer_bank_code="014"
    )
    return payment


def fetch(**changes: str) -> Any:
    return send_signed("GET", f"/sandbox/bank/statement?{urlencode(TODAY | changes)}")


def lines(**changes: str) -> list[str]:
    text: str = fetch(**changes).content.decode("cp874")
    assert text.endswith("\r\n")
    return text.split("\r\n")[:-1]


def detail(number: int, sign: str = "C", time: str = "100405", amount: str = "0000000150000") -> str:
    """A line of the file, written out by its columns."""
    line = (
        f"D{number:06d}{START}{DAY}{time}"
        + "สมชาย ใจดี".ljust(50)
        + "ABCDEFGHJ01234567890"
        + "SHOP7".ljust(20)
        + "T1".ljust(20)
        + f"00000000{sign}TRF0000000{amount}"
        + " " * 20
        + BILLER
        + " " * 32
        + "014"
        + " " * 10
    )
    assert len(line) == 256
    return line


def total(number: int, debit: str = "0" * 19, credit: str = "0" * 19) -> str:
    return f"T{number:06d}{START}{debit}{credit}".ljust(256)


HEAD = f"H000001{START}{BILLER.ljust(40)}{DAY}SANDBOX ".ljust(256)


def test_empty_statement_has_header_and_totals() -> None:
    assert lines() == [HEAD, total(2)]


def test_statement_lines_are_ordered_by_time(frozen_time: Any) -> None:
    pay_as_somchai("reversed")
    pay_as_somchai(paid_at=NOW - timedelta(hours=1), amount=125)
    frozen_time.shift(timedelta(seconds=3))
    assert lines() == [
        HEAD,
        detail(2, time="090405", amount="0000000000125"),
        detail(3),
        detail(4, "D", "100408"),
        total(5, debit="0000000150000000001", credit="0000000150125000002"),
    ]


COLUMNS_OF_LINES = [
    {(0, 1): "H", (1, 7): "000001", (7, 10): "998", (10, 20): "5000000001", (20, 60): BILLER, (60, 68): DAY,
     (68, 76): "SANDBOX"},
    {(20, 28): DAY, (28, 34): "100405", (34, 84): "สมชาย ใจดี", (84, 104): REFERENCE, (104, 124): "SHOP7",
     (124, 144): "T1", (152, 153): "C", (163, 176): "0000000150000", (196, 211): BILLER, (243, 246): "014"},
    {(20, 33): "0" * 13, (33, 39): "0" * 6, (39, 52): "0000000150000", (52, 58): "000001"},
]  # fmt: skip


def test_statement_columns_are_at_documented_positions() -> None:
    pay_as_somchai()
    for line, columns in zip(lines(), COLUMNS_OF_LINES, strict=True):
        encoded = line.encode("cp874")
        assert {place: encoded[slice(*place)].decode("cp874").strip() for place in columns} == columns


def test_statement_lines_are_256_bytes() -> None:
    payment = pay_as_somchai()
    payment.payer_name = "ก้" * 70 + "💰"
    payment.reference3 = "A" * 26
    (entry,) = payment.entries.all()
    entry.payment = payment
    written = list(statements.write_bot(BILLER, date(2026, 11, 21), [entry]))
    assert {len(line) for line in written} == {258}
    payment.payer_name = "💰"
    assert list(statements.write_bot(BILLER, date(2026, 11, 21), [entry]))[1][34:36] == b"? "


def test_statement_is_available_as_csv(frozen_time: Any) -> None:
    pay_as_somchai("reversed")
    frozen_time.shift(timedelta(seconds=3))
    response = fetch(format="csv")
    rest = f"{BILLER},ABCDEFGHJ01234567890,SHOP7,T1,1500.00"
    assert response.content.decode().replace('"', "") == (
        "date,time,biller_id,reference1,reference2,reference3,amount,type,payer_name,payer_bank_code\r\n"
        f"2026-11-21,10:04:05,{rest},credit,สมชาย ใจดี,014\r\n"
        f"2026-11-21,10:04:08,{rest},debit,สมชาย ใจดี,014\r\n"
    )
    assert response["Content-Type"] == "text/csv; charset=utf-8"
    assert response["Content-Disposition"] == f'attachment; filename="{BILLER}-2026-11-21.csv"'


@pytest.mark.parametrize("sign_of_a_formula", ["=", "+", "-", "@", "\t", "\r", "\n"])
@pytest.mark.parametrize("column", ["reference1", "reference2", "reference3", "payer_name"])
def test_csv_statement_escapes_formulas(sign_of_a_formula: str, column: str) -> None:
    pay_as_somchai()
    text = f"{sign_of_a_formula}HYPERLINK(1)"
    SandboxPayment.objects.update(**{column: text})
    header, row = csv.reader(io.StringIO(fetch(format="csv").content.decode(), newline=""))
    assert dict(zip(header, row, strict=True))[column] == f"'{text}"
    assert not any(cell.startswith(("=", "+", "-", "@", "\t", "\r", "\n")) for cell in row)


def test_import_reads_the_original_text_of_an_escaped_csv_cell() -> None:
    pay_as_somchai()
    SandboxPayment.objects.update(reference1="=1+1", reference2="'it")
    file = statement_file.open_file(io.BytesIO(fetch(format="csv").content), "day.csv")
    (row,) = file.read_lines(FileProblems())
    assert row.parsed is not None
    assert (row.parsed.reference1, row.parsed.reference2) == ("=1+1", "'it")


@pytest.mark.parametrize(
    ("scenario", "number"),
    [
        ("callback_lost", 1),
        ("reported_late", 1),
        ("twice", 2),
        ("callback_repeated", 1),
        ("declined", 0),
        ("unknown_reference", 1),
    ],
)
def test_statement_includes_unreported_transactions(scenario: str, number: int) -> None:
    pay_as_somchai(scenario)
    assert len(lines()) == number + 2


def test_statement_day_is_in_bangkok_time(frozen_time: Any) -> None:
    midnight = datetime(2026, 11, 20, 17, 0, tzinfo=UTC)
    for seconds in (-0.001, 0, 86_399.999, 86_400):
        pay_as_somchai(paid_at=midnight + timedelta(seconds=seconds))
    frozen_time.shift(timedelta(days=2))
    numbers = {day: len(lines(date=f"2026-11-{day}")) - 2 for day in (20, 21, 22, 23)}
    assert numbers == {20: 1, 21: 2, 22: 1, 23: 0}


def test_future_payment_is_not_on_statement(frozen_time: Any) -> None:
    pay_as_somchai("callback_lost", paid_at=NOW + timedelta(hours=1))
    assert len(lines()) == 2
    frozen_time.shift(timedelta(hours=1))
    assert len(lines()) == 3


def test_statement_contains_only_the_requested_biller() -> None:
    pay_as_somchai()
    pay_as_somchai(biller_id="010555000000002")
    assert len(lines()) == len(lines(biller_id="010555000000002")) == 3


@pytest.mark.parametrize("day", ["0001-01-01", "9999-12-31"])
def test_statement_exists_for_the_first_and_last_date(day: str) -> None:
    assert len(lines(date=day)) == 2


MALFORMED_PARAMETERS: dict[str, list[Any]] = {
    "biller_id": ["", "1"],
    "date": ["", "20261121", "2026-02-30", "๒๐๒๖-11-21"],
    "format": ["pdf", ""],
}


@pytest.mark.parametrize(
    ("name", "value"), [(name, value) for name, values in MALFORMED_PARAMETERS.items() for value in values]
)
def test_malformed_statement_parameter_is_named(name: str, value: str) -> None:
    assert error_of(fetch(**{name: value})) == (400, "invalid_parameters", name)


def own(shop: Shop, day: str = "2026-11-21", query: str = "") -> Any:
    return shop.get(f"/sandbox/v1/statements/{day}{query}")


def test_merchant_gets_statement_of_own_biller_id(shop: Shop, other_shop: Shop) -> None:
    for payee in (shop, other_shop, other_shop):
        shop.post(
            "/sandbox/v1/payments", {"qr_data": payee.qr_code()["qr_data"], "scenario": "callback_lost"}
        )
    response = own(shop)
    assert response["Content-Type"] == "text/plain; charset=tis-620"
    assert [response.content.count(b"\r\n"), own(other_shop).content.count(b"\r\n")] == [3, 4]
    assert shop.merchant.biller_id.encode() in response.content
    assert own(shop, query="?format=csv").content.count(b"\r\n") == 2


@pytest.mark.parametrize("day", ["today", "2026-2-1", "2026-02-30", "2026-11-21T00:00:00Z", "%00"])
def test_malformed_statement_date_is_refused(shop: Shop, day: str) -> None:
    assert error_of(own(shop, day)) == (400, "invalid_date", "date")


def test_unknown_statement_format_is_refused(shop: Shop) -> None:
    assert error_of(own(shop, query="?format=pdf")) == (400, "invalid_parameters", "format")
