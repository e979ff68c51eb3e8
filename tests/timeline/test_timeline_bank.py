"""Reports of banks, statements, and inquiries to banks and acquirers in the timeline."""

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.core.management import call_command
from django.db import DatabaseError, connection, transaction
from django.db.models.functions import Now
from django.test import Client

from banks import ChargeResult
from banks.sandbox_cards import SandboxAcquirer
from config.celery import app
from core import clock
from core.clock import iso
from payments import cards, tasks as payment_tasks
from payments.models import CardCharge, ChargeAnswer
from reconciliation import tasks as reconciliation_tasks
from reconciliation.exceptions import contradictions
from reconciliation.models import BankTransaction, Statement, StatementUpload
from reconciliation.statements import import_jobs
from tests.conftest import SandboxBankClient, Shop
from tests.context import acting_as
from tests.payments.card_builders import PATH, request
from tests.payments.conftest import acquirer, card_shop
from tests.payments.test_card_crashes import pay_and_crash
from tests.reconciliation.inquiries.builders import Answering
from tests.reconciliation.inquiries.conftest import served_by as answered_by
from tests.reconciliation.statements.statement_files import bot_file, credit_line
from tests.timeline.builders import bank_inquiry, entries, key_of, only_entry, types
from tests.timeline.test_timeline_page import read
from transfers.models import TransferContradiction

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
    admin_client.post(IMPORT, {"bank": "sandbox", "file": file})
    begin = f"{IMPORT}{StatementUpload.objects.get().pk}/"
    admin_client.post(begin, headers={"X-Request-Id": "desk-7.0042"})
    import_jobs.run_due()
    shown = only_entry(shop, code["payment_id"], "bank.statement")
    assert (shown["actor"], shown["request_id"]) == ("bank:sandbox", "desk-7.0042")
    text = read(admin_client, code["payment_id"])
    assert "imported_by:</small> staff:admin" in text and "desk-7.0042" in text
    page = f"/admin/reconciliation/statement/{Statement.objects.get().pk}/change/"
    assert "desk-7.0042" in admin_client.get(page).content.decode()


@pytest.mark.slow
def test_statement_imported_by_command_has_a_request_id_of_its_own(
    shop: Shop, code: dict[str, Any], tmp_path: Path
) -> None:
    path = tmp_path / "day.txt"
    path.write_bytes(file_about(code))
    call_command("import_statement", str(path), "--bank", "sandbox", "--quiet")
    request_id = only_entry(shop, code["payment_id"], "bank.statement")["request_id"]
    assert request_id == Statement.objects.get().request_id
    assert request_id.startswith("req_")


@pytest.mark.slow
def test_inquiry_entry_has_request_id_of_task(
    admin_client: Client, shop: Shop, clock: Any, answered_by: Answering
) -> None:
    answered_by()
    payment_id = shop.qr_code()["payment_id"]
    clock.shift(6)
    task_id = app.tasks[reconciliation_tasks.inquire_due.name].apply(throw=True).id
    shown = only_entry(shop, payment_id, "bank.inquiry")
    assert (shown["actor"], shown["request_id"]) == ("clock", task_id)
    assert shown["details"]["answer"] == "nothing"
    assert task_id in admin_client.get("/admin/reconciliation/inquiryanswer/").content.decode()


def test_same_answers_in_a_row_are_one_entry(shop: Shop) -> None:
    payment_id, now = shop.qr_code()["payment_id"], clock.now()
    first_at = now - timedelta(minutes=15)
    bank_inquiry(payment_id, "nothing", answer_count=10, first_answered_at=first_at, answered_at=now)
    shown = only_entry(shop, payment_id, "bank.inquiry")
    assert shown["summary"] == "Inquiry: the bank reports no money. 10 times in a row."
    assert (shown["at"], shown["details"]["first_at"]) == (iso(now), iso(first_at))
    assert shown["details"]["answers"] == 10


pytestmark = pytest.mark.slow
__all__ = ["acquirer", "card_shop"]


@pytest.fixture(autouse=True)
def no_wait_for_the_acquirer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SandboxAcquirer, "seconds", 0.0)


def run_inquiry_task() -> str:
    """Run the task that asks the acquirer about all open charges. Return its id."""
    CardCharge.objects.filter(completed_at__isnull=True).update(due_at=Now())
    return str(app.tasks[payment_tasks.inquire_due.name].apply(throw=True).id)


def pending(card_shop: Shop, *, reached: bool) -> str:
    """A payment whose process died, before or after its acquirer was asked for the charge."""
    pay_and_crash(card_shop, "request_charge", after=reached)
    return str(CardCharge.objects.get().payment_id)


def test_card_inquiry_entries_have_task_and_outcome(card_shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    payment_id = pending(card_shop, reached=False)
    first = run_inquiry_task()
    monkeypatch.setattr(cards, "MISSING_AFTER", timedelta(0))
    second = run_inquiry_task()
    shown = [each for each in entries(card_shop, payment_id) if each["type"] == "acquirer.inquiry"]
    assert [(each["actor"], each["request_id"]) for each in shown] == [("clock", first), ("clock", second)]
    assert {(each["details"]["acquirer"], each["details"]["answer"]) for each in shown} == {
        ("sandbox", "missing")
    }
    assert types(card_shop, payment_id) == [
        "payment.pending",
        "acquirer.inquiry",
        "acquirer.inquiry",
        "payment.failed",
    ]


def test_card_payment_completed_by_inquiry_keeps_the_actor(
    card_shop: Shop, admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    payment_id = pending(card_shop, reached=True)
    task_id = run_inquiry_task()
    shown = [(each["type"], each["actor"]) for each in entries(card_shop, payment_id)]
    assert shown == [
        ("payment.pending", key_of(card_shop)),
        ("acquirer.inquiry", "clock"),
        ("payment.succeeded", "clock"),
    ]
    first, question, end = entries(card_shop, payment_id)
    assert first["request_id"] == CardCharge.objects.get().request_id != ""
    assert question["request_id"] == end["request_id"] == task_id
    assert question["details"]["answer"] == "succeeded"
    assert task_id in read(admin_client, payment_id)
    assert task_id in admin_client.get("/admin/payments/chargeanswer/").content.decode()


def test_charge_answered_at_once_has_no_inquiry_entry(card_shop: Shop) -> None:
    payment_id = card_shop.post(PATH, request()).json()["payment_id"]
    assert types(card_shop, payment_id) == ["payment.pending", "payment.succeeded"]


@pytest.mark.parametrize(
    "attack",
    [
        "UPDATE payments_chargeanswer SET outcome = 'pending'",
        "DELETE FROM payments_chargeanswer",
        "TRUNCATE payments_chargeanswer",
        "UPDATE payments_cardcharge SET actor = 'key:somebody'",
    ],
)
def test_charge_answers_and_actor_are_append_only(card_shop: Shop, attack: str) -> None:
    pending(card_shop, reached=True)
    run_inquiry_task()
    assert ChargeAnswer.objects.count() == 1
    with pytest.raises(DatabaseError) as refusal, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(attack)
    assert "never change" in str(refusal.value)


def test_timeline_shows_charge_of_wrong_amount(card_shop: Shop) -> None:
    payment_id = pending(card_shop, reached=False)
    with transaction.atomic():
        cards.complete(
            payment_id, ChargeResult("succeeded", "chrg_1", amount=15_000, currency="THB"), now=clock.now()
        )
    shown = only_entry(card_shop, payment_id, "bank.contradiction")
    assert shown["summary"] == (
        f"Card payment {payment_id} asked for 1,500.00 THB, and sandbox charged 150.00 THB."
    )
    assert (shown["details"]["answer_amount"], shown["details"]["answer_currency"]) == (15_000, "THB")
    found = TransferContradiction.objects.get()
    now = clock.now() + timedelta(seconds=1)
    with acting_as("staff:malee"):
        contradictions.mark_failed(found.id, note="refund rfnd_1", now=now)
    assert types(card_shop, payment_id)[-3:] == [
        "bank.contradiction",
        "staff.booked_failed",
        "payment.failed",
    ]


@pytest.mark.parametrize(
    ("token", "last"), [("tok_test_visa", "payment.succeeded"), ("tok_test_declined", "payment.failed")]
)
def test_card_payment_entry_has_actor(card_shop: Shop, token: str, last: str) -> None:
    response = card_shop.post(PATH, request(token), **{"X-Request-Id": "till-3.0042"}).json()
    payment_id = response.get("payment_id") or response["error"]["payment_id"]
    shown = [(each["type"], each["actor"], each["request_id"]) for each in entries(card_shop, payment_id)]
    assert shown == [(each, key_of(card_shop), "till-3.0042") for each in ("payment.pending", last)]
