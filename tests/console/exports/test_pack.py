"""The accountant's pack: tables of a merchant's month whose sums are those of its balance."""

import csv
import re
import subprocess
from datetime import date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.contrib.auth.models import User
from django.test import Client
from pypdf import PdfReader

from console.exports import monthly, pack
from console.exports.monthly import LABELS
from core import clock
from core.clock import BANGKOK
from ledger.balance_transactions import SIGNS
from ledger.journal_types import JournalType
from merchants import services as merchants
from tests.audit import differences
from tests.conftest import SandboxBankClient, Shop
from tests.console.exports.exported import archive_of, sheets_of, written
from tests.operations.audit.scenarios import SCENARIOS, Serving, request_approvals
from tests.payments.test_fees import set_terms
from tests.reconciliation.builders import Seller, staff_client
from tests.reconciliation.statements.statement_files import bot_file, credit_line, import_file
from tests.refunds.builders import RefundShop
from tests.settlements.conftest import (
    AMOUNT,
    FEE,
    NET,
    VAT,
    ReportingAcquirer,
    item_of,
)
from tests.system_programs import find_program
from tests.withdrawals.builders import withdrawn

pytestmark = [pytest.mark.django_db, pytest.mark.slow]

OCTOBER = datetime(2026, 10, 20, 12, tzinfo=BANGKOK)
NOVEMBER = datetime(2026, 11, 10, 12, tzinfo=BANGKOK)
DECEMBER = datetime(2026, 12, 5, 12, tzinfo=BANGKOK)
TITLES = [
    "Summary", "Payments", "Refunds", "Withdrawals", "Fees and VAT", "Withholding tax", "Settlements",
    "Bank lines",
]  # fmt: skip
Tables = dict[str, list[list[Any]]]


@pytest.fixture
def accountant(db: None) -> Client:
    return staff_client("accountant", "export_lists")


def made(
    staff: Client, shop: Shop | None, *, month: str = "2026-11", at: datetime = DECEMBER, **asked: Any
) -> bytes:
    """The file that the accountant gets at this time."""
    query = f"month={month}" + (f"&merchant={shop.merchant.pk}" if shop else "")
    with time_machine.travel(at, tick=False):
        staff.force_login(User.objects.get(username="accountant"))
        return written(staff, **{"list": "monthly_report", "query": query, "file_type": "xlsx"} | asked)


def made_sheets(staff: Client, shop: Shop | None, **asked: Any) -> Tables:
    return sheets_of(made(staff, shop, **asked))


def lines_of(tables: Tables) -> list[tuple[Any, ...]]:
    """The lines of the summary below its heading."""
    rows = tables["Summary"]
    start = next(number for number, row in enumerate(rows) if row[0] == "Line")
    return [tuple(row) for row in rows[start + 1 :]]


def check_that_sums_agree(tables: Tables) -> None:
    *_lines, verdict = lines_of(tables)
    assert (verdict[0], verdict[3]) == ("Agrees with the ledger", 0)
    for title, rows in tables.items():
        assert not any("NOT" in str(row[0]) for row in rows), (title, rows[-1])


@pytest.fixture
def books(shop: Shop, acquirer: ReportingAcquirer, bank: SandboxBankClient) -> Shop:
    """A merchant that withholds tax: cards with fees that are known at once, in the next month, and never, a
    QR code with a fee of terms and its statement, and a settlement."""
    merchants.set_tax_details(shop.merchant.pk, tax_id="0107536000269", branch="00012", withholds=True)
    at_once = timedelta(0)
    with time_machine.travel(OCTOBER, tick=False):
        unknown = acquirer.charge(shop.merchant, fee=None, ago=at_once)
        set_terms(shop, OCTOBER, rate=100)
    with time_machine.travel(NOVEMBER, tick=False) as machine:
        known = acquirer.charge(shop.merchant, ago=at_once)
        for fee in (FEE, None):
            machine.shift(1)
            acquirer.charge(shop.merchant, fee=fee, ago=at_once)
        machine.shift(1)
        code = shop.qr_code(amount=150_000, reference="=1+1")
        bank.notify(code, paid_at=clock.now())
        import_file(bot_file(credit_line(code, clock.now())))
        machine.shift(timedelta(days=8))
        acquirer.transfer(item_of(unknown), item_of(known), ago=timedelta(hours=1))
        acquirer.read()
    return shop


def test_workbook_has_a_sheet_for_each_part(accountant: Client, books: Shop) -> None:
    tables = made_sheets(accountant, books)
    assert list(tables) == TITLES
    check_that_sums_agree(tables)
    facts = {row[0]: row[1] for row in tables["Summary"][:6]}
    assert facts["Tax id"] == "0107536000269 (branch 00012)"
    assert facts["Month"] == "November 2026"
    qr_net = 150_000 - 1_500 - 105
    assert lines_of(tables) == [
        ("Opening balance", "", "", 1_000.00),
        ("– Pending settlement", "", "", 1_000.00),
        ("Payments", "Sandbox acquirer", 3, 3_000.00),
        ("Payments", "Sandbox bank", 1, 1_500.00),
        ("Fees", "Sandbox", 4, -(3 * FEE + 1_500) / 100),
        ("VAT of fees", "Sandbox", 4, -(3 * VAT + 105) / 100),
        ("Closing balance", "", "", (3 * NET + AMOUNT + qr_net) / 100),
        ("– Available", "", "", (2 * NET + qr_net) / 100),
        ("– Pending settlement", "", "", (NET + AMOUNT) / 100),
        ("Agrees with the ledger", "", "", 0),
    ]


def test_payments_have_gross_fee_vat_and_net(accountant: Client, books: Shop) -> None:
    *rows, total = made_sheets(accountant, books)["Payments"][1:]
    assert [row[4:] for row in rows] == [
        [1_000.00, 36.50, 2.56, 960.94],
        [1_000.00, 36.50, 2.56, 960.94],
        [1_000.00, "", "", 1_000.00],  # its fee is not known
        [1_500.00, 15.00, 1.05, 1_483.95],
    ]
    assert total == ["Sum", "", "", "", 4_500.00, 88.00, 6.17, 4_405.83]
    assert rows[0][0] == NOVEMBER.replace(tzinfo=None)
    assert [row[3] for row in rows] == ["Card", "Card", "Card", "QR code"]
    assert rows[3][2] == "=1+1"


def test_fees_of_earlier_payments_are_of_the_month_in_which_they_were_known(
    accountant: Client, books: Shop
) -> None:
    tables = made_sheets(accountant, books)
    *rows, total = tables["Fees and VAT"][1:]
    assert [row[4:] for row in rows] == [[36.50, 2.56], [36.50, 2.56], [15.00, 1.05], [36.50, 2.56]]
    assert rows[3][2] == OCTOBER.replace(tzinfo=None)
    assert total[4:] == [124.50, 8.73]
    october = made_sheets(accountant, books, month="2026-10")
    check_that_sums_agree(october)
    assert october["Payments"][1][4:] == [1_000.00, "", "", 1_000.00]


def test_tax_is_withheld_of_the_fees_without_vat(accountant: Client, books: Shop) -> None:
    rows = made_sheets(accountant, books)["Withholding tax"]
    assert rows[1:] == [["Sandbox", 3, 124.50, 3.74], ["Sum", "", 124.50, 3.74]]  # 3.735
    merchants.set_tax_details(books.merchant.pk, tax_id="", branch="", withholds=False)
    assert made_sheets(accountant, books)["Withholding tax"][1:] == [["Sum", "", 0, 0]]


def test_settlements_and_bank_lines_are_those_of_the_month(accountant: Client, books: Shop) -> None:
    tables = made_sheets(accountant, books)
    rows = tables["Settlements"]
    assert [row[4:] for row in rows[1:]] == [
        [2_000.00, 73.00, 5.12, 1_921.88],
        [2_000.00, 73.00, 5.12, 1_921.88],
        [0, 0, 0, 0],
    ]
    assert [row[0] for row in rows[2:]] == ["Arrived in the month", "On the way at its end"]
    [line, total] = tables["Bank lines"][1:]
    assert (line[0], line[1], line[5], total[5]) == (date(2026, 11, 10), "Sandbox bank", 1_500.00, 1_500.00)
    assert line[4] == tables["Payments"][4][1]


def test_archive_has_the_same_tables(accountant: Client, books: Shop) -> None:
    files = archive_of(made(accountant, books, file_type="zip"))
    tables = made_sheets(accountant, books)
    assert list(files) == [
        "summary.csv", "payments.csv", "refunds.csv", "withdrawals.csv", "fees.csv", "withholding-tax.csv",
        "settlements.csv", "bank-lines.csv",
    ]  # fmt: skip
    for rows, table in zip(files.values(), tables.values(), strict=True):
        assert len([row for row in rows if row]) == len([row for row in table if any(row)])
    assert files["payments.csv"][4][0:3:2] == ["2026-11-10 12:00:03", "'=1+1"]
    assert files["payments.csv"][5][4:] == ["4500.00", "88.00", "6.17", "4405.83"]


def test_thai_files_have_thai_headings_and_years(accountant: Client, books: Shop) -> None:
    files = archive_of(made(accountant, books, file_type="zip", language="th"))
    assert files["payments.csv"][1][0] == "2569-11-10 12:00:00"
    assert files["bank-lines.csv"][1][0] == "2569-11-10"
    assert files["summary.csv"][0] == ["สรุป", "พฤศจิกายน 2569", "", ""]
    book = made(accountant, books, language="th")
    # A date all the same, which Excel and LibreOffice show with the Thai year.
    assert sheets_of(book)["การชำระเงิน"][1][0] == NOVEMBER.replace(tzinfo=None)


def test_libre_office_opens_and_prints_the_workbook(accountant: Client, books: Shop, tmp_path: Path) -> None:
    file, profile = tmp_path / "pack.xlsx", f"-env:UserInstallation=file://{tmp_path}/profile"
    program = find_program("soffice", "libreoffice-calc-nogui")
    file.write_bytes(made(accountant, books, language="th"))
    every_sheet = "csv:Text - txt - csv (StarCalc):44,34,76,1,,0,false,true,true,false,false,-1"
    for form in (every_sheet, "pdf"):
        command = [program, profile, "--headless", "--convert-to", form, "--outdir", str(tmp_path), str(file)]
        subprocess.run(command, check=True, capture_output=True, timeout=180)
    tables = {each.stem: list(csv.reader(each.read_text().splitlines())) for each in tmp_path.glob("*.csv")}
    assert len(tables) == len(TITLES)
    payments = tables["pack-การชำระเงิน"]
    assert [row[4:] for row in payments[4:]] == [
        ["1,500.00", "15.00", "1.05", "1,483.95"],
        ["4,500.00", "88.00", "6.17", "4,405.83"],
    ]
    assert payments[1][0] == "2569-11-10 12:00:00"
    assert payments[4][2] == "=1+1"
    text = "".join(page.extract_text() for page in PdfReader(tmp_path / "pack.pdf").pages)
    assert "4,405.83" in text


def test_no_text_is_the_name_of_an_account_or_a_type(accountant: Client, books: Shop) -> None:
    for rows in made_sheets(accountant, books).values():
        for cell in (cell for row in rows for cell in row if isinstance(cell, str)):
            assert not re.search(r"\b(bank|acquirer|fees|suspense):|\w_(payment|paid|returned)", cell), cell


def test_every_change_of_a_balance_has_words() -> None:
    """A type of journal without a label would be shown as it is stored."""
    changing = {type for type, signs in SIGNS.items() if sum(signs)}
    in_tables: set[str] = {*pack.PAYMENTS, *pack.LATER_FEES, *pack.REVERSALS}
    in_tables |= {"refund_paid", "refund_returned", "withdrawal_paid", "withdrawal_returned"}
    assert changing == in_tables
    assert set(LABELS) == {each for types in pack.COLUMNS for each in types}
    assert all(each in JournalType.values for each in LABELS if not each.startswith("fee"))


def test_sums_agree_after_each_scenario_of_money(
    accountant: Client, refund_shop: RefundShop, served_by: Serving, settings: Any
) -> None:
    """Refunds, reversals, debts, returned transfers, exceptions, unconfirmed and unsettled money."""
    with time_machine.travel(NOVEMBER):
        for scenario in SCENARIOS:
            scenario(refund_shop, served_by)
        request_approvals(refund_shop, served_by, settings)
        seller = Seller(refund_shop.shop, refund_shop.bank)
        credit = seller.sale()
        withdrawn(seller.shop, amount=seller.balance()[0])
        seller.reverse(credit)
    assert not differences()
    tables = made_sheets(accountant, refund_shop.shop)
    check_that_sums_agree(tables)
    parts = {line[0].removeprefix("– ") for line in lines_of(tables) if line[0].startswith("–")}
    assert parts >= {"Reserved", "Pending settlement", "Debt"}
    kinds = {row[1] for title in ("Refunds", "Withdrawals") for row in tables[title][1:-1]}
    assert kinds == {str(LABELS[each]) for each in (*pack.REFUNDED, *pack.WITHDRAWN)}


def test_month_that_goes_on_is_marked(accountant: Client, books: Shop) -> None:
    tables = made_sheets(accountant, books, at=NOVEMBER + timedelta(days=1))
    assert "The month has not ended. The figures are of 2026-11-11 12:00:00." in [
        row[0] for row in tables["Summary"]
    ]
    check_that_sums_agree(tables)
    assert tables["Settlements"][1][0] == "Arrived in the month"


def test_tables_are_read_in_pages(accountant: Client, books: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = made_sheets(accountant, books)
    monkeypatch.setattr(pack, "PAGE_ROWS", 1)
    assert made_sheets(accountant, books) == whole


def test_sum_that_is_not_that_of_the_summary_is_said(accountant: Client, books: Shop) -> None:
    [report] = monthly.read(monthly.Month(date(2026, 11, 1), date(2026, 11, 30)), books.merchant.pk)
    report.lines.pop(0)
    assert not report.agrees
    [_summary, payments, *_others] = pack.sheets(report, monthly.parse("2026-11", DECEMBER.date()), DECEMBER)
    *_rows, total = payments.rows
    assert total[0] == "Sum, which is NOT that of the summary"


def test_totals_of_all_merchants_have_a_line_for_each(
    accountant: Client, books: Shop, other_shop: Shop, bank: SandboxBankClient
) -> None:
    merchants.add_merchant(name="Live", mode="live", late_money="review", now=OCTOBER)
    with time_machine.travel(NOVEMBER, tick=False):
        bank.notify(other_shop.qr_code(amount=10_000), paid_at=clock.now())
    live, tables = (
        made_sheets(accountant, None, query=f"month=2026-11&mode={mode}") for mode in ("live", "test")
    )
    assert list(live) == ["Live merchants", "Lines"]
    assert list(tables) == ["Test merchants", "Lines"]
    header, *rows, total = tables["Test merchants"]
    assert [row[1] for row in rows] == ["Larb Palace", "Somtam House"]
    assert header[4:] == [
        "Opening balance", "Payments", "Fees", "VAT of fees", "Refunds", "Withdrawals", "Closing balance",
        "Difference",
    ]  # fmt: skip
    assert rows[1][2:] == [
        "0107536000269", "00012", 1_000.00, 4_500.00, -124.50, -8.73, 0, 0, 5_366.77, 0,
    ]  # fmt: skip
    sums = [sum(Decimal(str(row[column])) for row in rows) for column in range(4, 12)]
    assert [Decimal(str(cell)) for cell in total[4:]] == sums
    assert live["Live merchants"][1:] == [["Sum", "", "", "", *[0] * 8]]
    assert {row[2] for row in tables["Lines"][1:]} == {"Larb Palace", "Somtam House"}
