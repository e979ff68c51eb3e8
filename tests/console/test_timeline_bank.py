"""What banks say and are asked, in the timeline: by which request, and who brought it in."""

from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.test import Client

from config.celery import app
from receipts.models import Receipt, Statement
from receipts.tasks import inquire_due
from tests.conftest import BankCaller, Shop
from tests.console.test_timeline_page import read
from tests.console.timeline_cast import only
from tests.receipts.inquiries.conftest import Answering
from tests.receipts.inquiries.conftest import served_by as answered_by
from tests.receipts.statements.cast import bot, line_of

__all__ = ["answered_by"]
IMPORT = "/admin/receipts/statement/import/"


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
    admin_client: Client, shop: Shop, clock: Any, answered_by: Answering
) -> None:
    answered_by()
    payment_id = shop.qr_code()["payment_id"]
    clock.shift(6)
    task_id = app.tasks[inquire_due.name].apply(throw=True).id
    told = only(shop, payment_id, "bank.inquiry")
    assert (told["actor"], told["request_id"]) == ("clock", task_id)
    assert told["details"]["said"] == "nothing"
    assert task_id in admin_client.get("/admin/receipts/inquiryanswer/").content.decode()
