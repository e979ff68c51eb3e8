"""What banks say and are asked, in the timeline: by which request, and who brought it in."""

from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.test import Client

from config.celery import app
from reconciliation.models import BankTransaction, Statement
from reconciliation.tasks import inquire_due
from tests.conftest import SandboxBankClient, Shop
from tests.reconciliation.inquiries.builders import Answering
from tests.reconciliation.inquiries.conftest import served_by as answered_by
from tests.reconciliation.statements.statement_files import bot_file, credit_line
from tests.timeline.builders import only_entry
from tests.timeline.test_timeline_page import read

__all__ = ["answered_by"]
IMPORT = "/admin/reconciliation/statement/import/"


@pytest.fixture
def code(clock: Any, shop: Shop, bank: SandboxBankClient) -> dict[str, Any]:
    """A code that was paid."""
    code = shop.qr_code()
    bank.notify(code)
    return code


def file_about(code: dict[str, Any]) -> bytes:
    return bot_file(credit_line(code, BankTransaction.objects.get(payment_id=code["payment_id"]).paid_at))


@pytest.mark.slow
def test_statement_entry_has_request_id_of_upload(
    admin_client: Client, shop: Shop, code: dict[str, Any]
) -> None:
    file = SimpleUploadedFile("day.txt", file_about(code))
    admin_client.post(IMPORT, {"bank": "sandbox", "file": file}, headers={"X-Request-Id": "desk-7.0042"})
    shown = only_entry(shop, code["payment_id"], "bank.statement")
    assert (shown["actor"], shown["request_id"]) == ("bank:sandbox", "desk-7.0042")
    text = read(admin_client, code["payment_id"])
    assert "imported_by:</small> staff:admin" in text and "desk-7.0042" in text
    page = f"/admin/reconciliation/statement/{Statement.objects.get().pk}/change/"
    assert "desk-7.0042" in admin_client.get(page).content.decode()


@pytest.mark.slow
def test_statement_imported_by_command_has_no_request_id(
    shop: Shop, code: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "day.txt"
    path.write_bytes(file_about(code))
    call_command("import_statement", str(path), "--bank", "sandbox", "--quiet")
    assert only_entry(shop, code["payment_id"], "bank.statement")["request_id"] is None


@pytest.mark.slow
def test_inquiry_entry_has_request_id_of_task(
    admin_client: Client, shop: Shop, clock: Any, answered_by: Answering
) -> None:
    answered_by()
    payment_id = shop.qr_code()["payment_id"]
    clock.shift(6)
    task_id = app.tasks[inquire_due.name].apply(throw=True).id
    shown = only_entry(shop, payment_id, "bank.inquiry")
    assert (shown["actor"], shown["request_id"]) == ("clock", task_id)
    assert shown["details"]["said"] == "nothing"
    assert task_id in admin_client.get("/admin/reconciliation/inquiryanswer/").content.decode()
