"""What banks say and are asked, in the timeline: by which request, and who brought it in."""

from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import time_machine
from django.contrib.admin.utils import quote
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.test import Client

import banks
from banks import Word
from config.celery import app
from core import clock as our_clock
from receipts import acts
from receipts.models import Notice, Receipt, Statement
from receipts.orders import OWNERS
from receipts.tasks import inquire_due
from tests.conftest import BankCaller, Shop
from tests.console.test_timeline_page import read
from tests.console.timeline_cast import CLERK, WHY, decided, entries, only, types
from tests.receipts.inquiries.cast import AskedBank
from tests.receipts.statements.cast import bot, line_of
from tests.receipts.test_orders import told as word_of
from tests.refunds.cast import Counter, carry_out
from transfers import services as transfers

IMPORT = "/admin/receipts/statement/import/"


@pytest.fixture
def clock(noon: datetime) -> Iterator[Any]:
    with time_machine.travel(noon, tick=False) as clock:
        yield clock


@pytest.fixture
def code(clock: Any, shop: Shop, bank: BankCaller) -> dict[str, Any]:
    """A code that was paid."""
    code = shop.qr_code()
    bank.tell(code)
    return code


def file_about(code: dict[str, Any]) -> bytes:
    return bot(line_of(code, Receipt.objects.get(payment_id=code["payment_id"]).paid_at))


def test_a_line_of_a_statement_names_the_request_that_brought_the_file(
    admin_client: Client, shop: Shop, code: dict[str, Any]
) -> None:
    file = SimpleUploadedFile("day.txt", file_about(code))
    admin_client.post(IMPORT, {"bank": "sandbox", "file": file}, headers={"X-Request-Id": "desk-7.0042"})
    told = only(shop, code["payment_id"], "bank.statement")
    assert (told["actor"], told["request_id"]) == ("bank:sandbox", "desk-7.0042")
    text = read(admin_client, code["payment_id"])
    assert "imported_by:</small> admin" in text and "desk-7.0042" in text
    page = f"/admin/receipts/statement/{Statement.objects.get().pk}/change/"
    assert "desk-7.0042" in admin_client.get(page).content.decode()


def test_a_statement_that_a_command_imports_has_no_request(
    shop: Shop, code: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "day.txt"
    path.write_bytes(file_about(code))
    call_command("import_statement", str(path), "--bank", "sandbox", "--quiet")
    assert only(shop, code["payment_id"], "bank.statement")["request_id"] is None


def test_a_question_to_the_bank_names_the_task_that_put_it(
    admin_client: Client, shop: Shop, clock: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    bank = AskedBank()
    monkeypatch.setattr(banks, "get", lambda name, link=None: bank)
    monkeypatch.setattr(banks, "asked", lambda: {"sandbox": 50})
    payment_id = shop.qr_code()["payment_id"]
    clock.shift(6)
    task_id = app.tasks[inquire_due.name].apply(throw=True).id
    told = only(shop, payment_id, "bank.inquiry")
    assert (told["actor"], told["request_id"]) == ("clock", task_id)
    assert told["details"]["said"] == "nothing"
    assert task_id in admin_client.get("/admin/receipts/inquiryanswer/").content.decode()


def test_what_the_bank_tells_of_a_refund_of_its_own_accord_is_quoted(
    admin_client: Client, shop: Shop, bank: BankCaller, served_by: Callable[..., Any]
) -> None:
    served_by(sends=[Word("processing")])
    counter = Counter(shop, bank)
    paid = counter.paid()
    refund_id = counter.refund(paid)["refund_id"]
    carry_out()
    for status in ("succeeded", "succeeded", "failed"):
        bank.post(word_of(refund_id, status))
    told = [each for each in entries(shop, paid) if "order_id" in each["details"]]
    assert [each["details"]["verdict"] for each in told] == ["new", "repeat", "conflict"]
    assert {(each["type"], each["actor"]) for each in told} == {("bank.notice", "bank:sandbox")}
    assert {each["details"]["order_id"] for each in told} == {refund_id}
    assert told[0]["request_id"] == only(shop, paid, "refund.completed")["request_id"]
    first = Notice.objects.get(order_id=refund_id, verdict="new")
    order = admin_client.get(f"/admin/transfers/transfer/{refund_id}/change/").content.decode()
    assert f">{first}</a> (new)" in order and "(conflict)" in order
    notice = admin_client.get(f"/admin/receipts/notice/{first.pk}/change/").content.decode()
    assert f"/admin/transfers/transfer/{quote(refund_id)}/change/" in notice
    assert first.request_id in notice


def test_what_the_bank_tells_of_money_sent_back_stands_before_what_came_of_it(
    shop: Shop, bank: BankCaller, code: dict[str, Any], clock: Any, served_by: Callable[..., Any]
) -> None:
    served_by(sends=[Word("processing")])
    bank.tell(code)
    waiting = Receipt.objects.get(outcome="duplicate")
    made = acts.send_back(waiting.pk, by=CLERK, why=WHY, now=our_clock.now())
    transfers.work("return", OWNERS["rtn"], now=our_clock.now)
    clock.shift(7)
    bank.post(word_of(made.id))
    *_, sent, notice, completed = entries(shop, code["payment_id"])
    assert [each["type"] for each in (sent, notice, completed)] == [
        "return.told",
        "bank.notice",
        "return.completed",
    ]
    assert notice["details"]["order_id"] == made.id


def test_staff_who_dismiss_a_contradiction_about_a_refund_are_told(
    shop: Shop, bank: BankCaller, served_by: Callable[..., Any]
) -> None:
    served_by(sends=[Word("succeeded", "b-1")])
    counter = Counter(shop, bank)
    paid = counter.paid()
    refund_id = counter.refund(paid)["refund_id"]
    carry_out()
    bank.post(word_of(refund_id, "failed"))
    decided(Notice.objects.get(verdict="conflict"), "dismissed")
    assert types(shop, paid)[-2:] == ["bank.notice", "staff.dismissed"]


@pytest.mark.parametrize("order_id", ["wd_000000000000000000000000000", "chrg_17"])
def test_a_notice_of_an_order_that_nobody_gave_names_none(
    shop: Shop, bank: BankCaller, order_id: str
) -> None:
    bank.post(word_of(order_id))
    notice = Notice.objects.get()
    assert (notice.verdict, notice.order_id) == ("conflict", None)
