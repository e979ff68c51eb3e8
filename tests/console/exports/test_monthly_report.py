"""The page of a month for the accountant, which agrees with the ledger, and its files of all merchants."""

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta
from html import unescape
from typing import Any

import pytest
import time_machine
from django.test import Client

from audit_trail.acts import Act
from audit_trail.models import AuditRecord
from console.exports import jobs, monthly, monthly_page
from console.exports.monthly import MerchantMonth, Month, MonthError
from console.models import ExportFailure
from core import clock
from core.database import rows
from core.work.background_jobs import JobState
from merchants.models import Merchant
from tests.console.exports.exported import archive_of, ask, content, written
from tests.factories import MerchantFactory
from tests.ledger.builders import MerchantLedger
from tests.reconciliation.builders import staff_client

PAGE = "/admin/reports/monthly/"
TODAY = date(2026, 11, 21)
NOVEMBER = Month(date(2026, 11, 1), date(2026, 11, 30))
# Midnight in Bangkok is 17:00 UTC of the day before.
LAST_OF_OCTOBER = datetime(2026, 10, 31, 23, 59, 59, tzinfo=clock.BANGKOK)
FIRST_OF_NOVEMBER = datetime(2026, 11, 1, tzinfo=clock.BANGKOK)
LAST_OF_NOVEMBER = datetime(2026, 11, 30, 23, 59, 59, tzinfo=clock.BANGKOK)
FIRST_OF_DECEMBER = datetime(2026, 12, 1, tzinfo=clock.BANGKOK)


def at(instant: datetime, *postings: Callable[[], Any]) -> None:
    with time_machine.travel(instant, tick=False):
        for post in postings:
            post()


@pytest.fixture
def books(db: None) -> MerchantLedger:
    """A merchant with journals before, in and after November."""
    books = MerchantLedger(str(MerchantFactory(name="ร้านส้มตำ").id))
    at(LAST_OF_OCTOBER, lambda: books.credit(100_000))
    at(FIRST_OF_NOVEMBER, lambda: books.credit(150_000), lambda: books.credit(50_050))
    at(LAST_OF_NOVEMBER, lambda: books.reserve(70_000), lambda: books.pay_out(30_000))
    at(FIRST_OF_DECEMBER, lambda: books.credit(1_000))
    return books


def lines(report: MerchantMonth) -> list[tuple[str, str, int, int]]:
    return [(line.type, line.counterpart, line.count, line.amount) for line in report.lines]


@pytest.mark.parametrize(
    ("text", "first"),
    [("", date(2026, 10, 1)), ("2026-11", date(2026, 11, 1)), ("2024-02", date(2024, 2, 1))],
)
def test_month_is_whole_days_in_bangkok(text: str, first: date) -> None:
    month = monthly.parse(text, TODAY)
    assert month.first == first
    assert month.start.utcoffset() == timedelta(hours=7)
    assert (month.end - timedelta(microseconds=1)).month == first.month


@pytest.mark.parametrize("text", ["2026-12", "x", "0001-01", "9999-12", "2026-13", "2026-1", "\0", "1999-12"])
def test_other_texts_are_no_month(text: str) -> None:
    with pytest.raises(MonthError):
        monthly.parse(text, TODAY)


def test_opening_balance_and_changes_are_the_closing_balance(books: MerchantLedger) -> None:
    [report] = monthly.read(NOVEMBER, books.merchant_id)
    assert lines(report) == [
        ("payment", "bank:sandbox", 2, 200_050),
        ("withdrawal_paid", "bank:sandbox", 1, -30_000),
    ]
    assert (report.opening, report.closing) == (100_000, 270_050)
    assert report.agrees


def test_month_before_ends_where_the_month_begins(books: MerchantLedger) -> None:
    [october] = monthly.read(Month(date(2026, 10, 1), date(2026, 10, 31)), books.merchant_id)
    [december] = monthly.read(Month(date(2026, 12, 1), date(2026, 12, 31)), books.merchant_id)
    assert (october.opening, october.closing) == (0, 100_000)
    assert (december.opening, december.closing) == (270_050, 271_050)


def test_report_of_all_merchants_leaves_out_those_without_money(books: MerchantLedger) -> None:
    MerchantFactory()
    other = MerchantLedger()
    at(FIRST_OF_NOVEMBER, lambda: other.credit(500))
    found = {report.merchant.pk: report.closing for report in monthly.read(NOVEMBER)}
    assert found == {books.merchant_id: 270_050, other.merchant_id: 500}


def test_merchant_without_a_ledger_account_has_an_empty_report(db: None) -> None:
    [report] = monthly.read(NOVEMBER, MerchantFactory().pk)
    assert (report.opening, report.closing, report.lines) == (0, 0, [])


def test_page_shows_the_report_and_that_it_agrees(admin_client: Client, books: MerchantLedger) -> None:
    page = admin_client.get(f"{PAGE}?month=2026-11&merchant={books.merchant_id}").content.decode()
    for text in ("ร้านส้มตำ", "1,000.00 THB", "2,000.50 THB", "-300.00 THB", "2,700.50 THB", "Agrees"):
        assert text in page


def test_file_has_the_lines_of_the_page_and_is_recorded(admin_client: Client, books: MerchantLedger) -> None:
    page = admin_client.get(f"{PAGE}?month=2026-11").content.decode()
    query = unescape(page.split('name="query" value="')[1].split('"')[0])
    assert re.findall('name="file_type" value="(.*?)"', page) == ["zip", "xlsx", "pdf"]
    assert re.findall('<option value="(en|th)"( selected)?', page) == [("en", " selected"), ("th", "")]
    export = ask(admin_client, list="monthly_report", query=query, file_type="zip")
    at(FIRST_OF_DECEMBER, jobs.run_due)
    answer = admin_client.get(f"/admin/exports/{export.pk}/")
    assert 'filename="accountant-2026-11.zip"' in answer["Content-Disposition"]
    rows = archive_of(content(admin_client, export))["lines.csv"][1:]
    assert [row[4:] for row in rows] == [
        ["Opening balance", "", "", "1000.00"],
        ["– Available", "", "", "1000.00"],
        ["Payments", "Sandbox bank", "2", "2000.50"],
        ["Withdrawals", "Sandbox bank", "1", "-300.00"],
        ["Closing balance", "", "", "2700.50"],
        ["– Available", "", "", "2300.50"],
        ["– Reserved", "", "", "400.00"],
        ["Agrees with the ledger", "", "", "0.00"],
    ]
    assert {(row[0], row[2]) for row in rows} == {("November 2026", "ร้านส้มตำ")}
    record = AuditRecord.objects.get(act=Act.EXPORTED)
    assert (record.object_type, record.after["filter"]) == ("ledger.entry", query)


def test_language_of_the_file_can_be_chosen(admin_client: Client, books: MerchantLedger) -> None:
    asked = {"list": "monthly_report", "query": "month=2026-11", "file_type": "zip"}
    for language, month in (("th", "พฤศจิกายน 2569"), ("en", "November 2026"), ("de", "November 2026")):
        file = written(admin_client, **asked, file_language=language)
        assert archive_of(file)["lines.csv"][1][0] == month


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("?month=2999-01", 200),
        ("?month=x", 200),
        ("?merchant=mch_nobody", 404),
        ("?merchant=%00", 404),
    ],
)
def test_bad_input_is_a_clear_page(admin_client: Client, query: str, status: int) -> None:
    answer = admin_client.get(PAGE + query)
    assert answer.status_code == status
    assert status == 404 or "Choose a month that has begun." in answer.content.decode()


@pytest.mark.slow
def test_report_needs_the_permission_to_export(books: MerchantLedger) -> None:
    assert Merchant.objects.filter(pk=books.merchant_id).exists()
    assert staff_client("reader", "view_entry", "view_merchant").get(PAGE).status_code == 403
    assert staff_client("accountant", "export_lists").get(PAGE).status_code == 200


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """The page has less time than its statement takes."""
    read = monthly.read

    def read_slowly(month: Month, merchant_id: str = "", **options: Any) -> list[MerchantMonth]:
        rows.run("SELECT pg_sleep(CASE current_setting('statement_timeout') WHEN '1s' THEN 5 ELSE 0 END)", [])
        return read(month, merchant_id, **options)

    monkeypatch.setattr(monthly_page, "STATEMENT_SECONDS", 1)
    monkeypatch.setattr(monthly, "read", read_slowly)


@pytest.mark.slow
@pytest.mark.django_db(transaction=True)
def test_report_that_is_too_large_for_the_page_has_files(
    admin_client: Client, books: MerchantLedger, large: None
) -> None:
    page = admin_client.get(f"{PAGE}?month=2026-11&merchant={books.merchant_id}").content.decode()
    assert "The month is too large for this page." in page
    query = unescape(page.split('name="query" value="')[1].split('"')[0])
    assert written(admin_client, list="monthly_report", query=query, file_type="pdf")


@pytest.mark.parametrize("query", ["month=x", "month=2999-01", "month=2026-11&merchant=mch_nobody"])
def test_report_without_a_month_or_merchant_is_no_file(
    admin_client: Client, books: MerchantLedger, query: str
) -> None:
    export = ask(admin_client, list="monthly_report", query=query, file_type="xlsx")
    jobs.run_due()
    export.refresh_from_db()
    assert (export.state, export.failure) == (JobState.FAILED, ExportFailure.INVALID)
