"""The monthly report to print has the numbers of the file, in the language of the reader."""

import csv
import io
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.contrib.auth.models import User
from django.db import connections
from django.test import Client
from pypdf import PdfReader

from audit_trail.acts import Act
from audit_trail.models import AuditRecord
from core import clock, pdf
from tests.factories import MerchantFactory
from tests.ledger.builders import MerchantLedger
from tests.reconciliation.builders import staff_client

pytestmark = pytest.mark.slow

PAGE = "/admin/reports/monthly/"
NOVEMBER = datetime(2026, 11, 10, 12, tzinfo=clock.BANGKOK)
DECEMBER = datetime(2026, 12, 2, 12, tzinfo=clock.BANGKOK)


def at(instant: datetime, *postings: Callable[[], Any]) -> None:
    with time_machine.travel(instant, tick=False):
        for post in postings:
            post()


@pytest.fixture
def books(db: None) -> MerchantLedger:
    books = MerchantLedger(str(MerchantFactory(name="ร้านน้ำปั่นที่นี่").id))
    at(
        NOVEMBER,
        lambda: books.credit(123_456_789),
        lambda: books.reserve(70_000),
        lambda: books.pay_out(30_000),
    )
    return books


def accountant() -> Client:
    client = Client()
    client.force_login(User.objects.get(username="accountant"))
    return client


def printed(query: str = "", at: datetime = DECEMBER, language: str = "en") -> bytes:
    with time_machine.travel(at, tick=False):
        answer = accountant().get(f"{PAGE}?month=2026-11&file=pdf{query}", HTTP_ACCEPT_LANGUAGE=language)
    assert answer.status_code == 200, answer.content
    assert answer.headers["Content-Type"] == "application/pdf"
    return answer.content


@pytest.fixture
def staff(db: None) -> Client:
    return staff_client("accountant", "export_lists")


def text_of(content: bytes) -> str:
    return "\n".join(page.extract_text() for page in PdfReader(io.BytesIO(content)).pages)


def test_print_has_the_numbers_of_the_file(staff: Client, books: MerchantLedger) -> None:
    other = MerchantLedger()
    at(NOVEMBER, lambda: other.credit(500))
    table = staff.get(f"{PAGE}?month=2026-11&file=csv").content.decode("utf-8-sig")
    text = text_of(printed())
    for row in csv.DictReader(io.StringIO(table, newline="")):
        amount = f"{float(row['Amount (THB)']):,.2f}"
        line = " ".join(filter(None, [row["Line"], row["Bank"], row["Count"], amount]))
        assert line in text or row["Line"] == "Agrees with the ledger"
        assert row["Merchant"] in text
    assert text.count("Agrees with the ledger") == 2
    assert "2026-11-01 00:00:00 – 2026-11-30 23:59:59" in text


def test_print_is_in_the_language_of_the_reader(staff: Client, books: MerchantLedger) -> None:
    text = text_of(printed(language="th"))
    assert "ยอดยกมา" in text
    assert "Opening" not in text
    assert "1,234,267.89" in text


def test_print_of_a_month_that_has_ended_is_always_the_same(staff: Client, books: MerchantLedger) -> None:
    later = DECEMBER + timedelta(days=9, seconds=7)
    assert printed() == printed(at=later)


def test_print_of_a_month_that_goes_on_says_when_it_was_made(staff: Client, books: MerchantLedger) -> None:
    text = text_of(printed(at=NOVEMBER + timedelta(seconds=5)))
    assert "The month has not ended. The figures are of 2026-11-10 12:00:05." in text


def test_print_is_recorded(staff: Client, books: MerchantLedger) -> None:
    printed(f"&merchant={books.merchant_id}")
    record = AuditRecord.objects.get(act=Act.EXPORTED)
    assert (record.after["file"], record.after["merchant"]) == ("pdf", books.merchant_id)


def test_report_that_is_too_long_to_print_is_a_clear_page(
    staff: Client, books: MerchantLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pdf, "MAX_ROWS", 2)
    answer = staff.get(f"{PAGE}?month=2026-11&file=pdf")
    assert answer.status_code == 422
    assert "too long to print" in answer.text
    assert not AuditRecord.objects.filter(act=Act.EXPORTED).exists()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("name", ["pdf", "csv"])
def test_person_has_one_export_at_a_time(staff: Client, books: MerchantLedger, name: str) -> None:
    other = connections["default"].copy("other")
    try:
        with other.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(hashtextextended('export:accountant', 0))")
        assert staff.get(f"{PAGE}?month=2026-11&file={name}").status_code == 429
    finally:
        other.close()
    assert staff.get(f"{PAGE}?month=2026-11&file={name}").status_code == 200
