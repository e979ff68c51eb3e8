"""The monthly report to print has the numbers of the file, in the language of the reader."""

import io
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.contrib.auth.models import User
from django.test import Client
from pypdf import PdfReader

from audit_trail.acts import Act
from audit_trail.models import AuditRecord
from console.exports import jobs
from core import clock
from core.drawing import pdf
from merchants import services as merchants
from merchants.models import Merchant
from tests.console.exports.exported import PAGE as EXPORTS, archive_of, ask, written
from tests.factories import MerchantFactory
from tests.ledger.builders import MerchantLedger
from tests.reconciliation.builders import staff_client

pytestmark = pytest.mark.slow

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


@pytest.fixture
def staff(db: None) -> Client:
    return staff_client("accountant", "export_lists")


def printed(staff: Client, query: str = "", at: datetime = DECEMBER, language: str = "en") -> bytes:
    with time_machine.travel(at, tick=False):
        staff.force_login(User.objects.get(username="accountant"))
        asked = {"list": "monthly_report", "query": f"month=2026-11{query}", "file_type": "pdf"}
        return written(staff, language=language, **asked)


def text_of(content: bytes) -> str:
    return "\n".join(page.extract_text() for page in PdfReader(io.BytesIO(content)).pages)


def test_print_has_the_numbers_of_the_file(staff: Client, books: MerchantLedger) -> None:
    other = MerchantLedger()
    at(NOVEMBER, lambda: other.credit(500))
    text = text_of(printed(staff))
    asked = {"list": "monthly_report", "query": "month=2026-11", "file_type": "zip"}
    with time_machine.travel(DECEMBER, tick=False):
        lines = archive_of(written(staff, **asked))["lines.csv"][1:]
    for row in lines:
        line = " ".join(filter(None, [*row[4:7], f"{float(row[7]):,.2f}"]))
        assert line in text or row[4] == "Agrees with the ledger"
        assert row[1] in text
    assert text.count("Agrees with the ledger") == 2
    assert text.count("November 2026") >= 2


def test_print_of_a_merchant_is_signed_on_one_page(staff: Client, books: MerchantLedger) -> None:
    merchant = Merchant.objects.get(pk=books.merchant_id)
    merchants.set_tax_details(merchant.pk, tax_id="0107536000269", branch="", withholds=True)
    file = printed(staff, f"&merchant={books.merchant_id}")
    assert len(PdfReader(io.BytesIO(file)).pages) == 1
    text = text_of(file)
    parts = ("0107536000269 (head office)", books.merchant_id, "1,234,267.89", "Name ....", "Signature ....")
    for part in parts:
        assert part in text
    going_on = printed(staff, f"&merchant={books.merchant_id}", at=NOVEMBER + timedelta(seconds=5))
    assert "Signature" not in text_of(going_on)


def test_print_is_in_the_language_of_the_reader(staff: Client, books: MerchantLedger) -> None:
    text = text_of(printed(staff, language="th"))
    assert "ยอดยกมา" in text
    assert "Opening" not in text
    assert "พฤศจิกายน 2569" in text
    assert "1,234,267.89" in text


def test_print_of_a_month_that_has_ended_is_always_the_same(staff: Client, books: MerchantLedger) -> None:
    later = DECEMBER + timedelta(days=9, seconds=7)
    assert printed(staff) == printed(staff, at=later)


def test_print_of_a_month_that_goes_on_says_when_it_was_made(staff: Client, books: MerchantLedger) -> None:
    text = text_of(printed(staff, at=NOVEMBER + timedelta(seconds=5)))
    assert "The month has not ended. The figures are of 2026-11-10 12:00:05." in text


def test_print_is_recorded(staff: Client, books: MerchantLedger) -> None:
    printed(staff, f"&merchant={books.merchant_id}")
    record = AuditRecord.objects.get(act=Act.EXPORTED)
    assert (record.after["file"], record.after["rows"]) == ("pdf", 2)
    assert record.after["filter"] == f"month=2026-11&merchant={books.merchant_id}"


def test_report_that_is_too_long_to_print_is_said_on_the_page(
    staff: Client, books: MerchantLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pdf, "MAX_ROWS", 2)
    export = ask(staff, list="monthly_report", query="month=2026-11", file_type="pdf")
    jobs.run_due()
    assert "too long to print" in staff.get(EXPORTS).content.decode()
    assert staff.get(f"{EXPORTS}{export.pk}/").status_code == 404
    assert not AuditRecord.objects.filter(act=Act.EXPORTED).exists()
