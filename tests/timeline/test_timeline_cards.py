"""A card payment that its acquirer was asked about: who began it, and each question with what was said."""

from datetime import timedelta

import pytest
from django.db import DatabaseError, connection, transaction
from django.db.models.functions import Now
from django.test import Client

from banks import ChargeResult
from banks.sandbox_cards import SandboxAcquirer
from config.celery import app
from core import clock
from payments import cards
from payments.models import CardCharge, ChargeAnswer
from payments.tasks import inquire_due
from reconciliation.exceptions import contradictions
from tests.conftest import Shop
from tests.context import acting_as
from tests.payments.card_builders import PATH, request
from tests.payments.conftest import acquirer, till
from tests.payments.test_card_crashes import pay_and_die
from tests.timeline.builders import entries, only_entry, types
from tests.timeline.test_timeline_page import read
from transfers.models import TransferContradiction

pytestmark = pytest.mark.slow

__all__ = ["acquirer", "till"]


@pytest.fixture(autouse=True)
def known_as_dead_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SandboxAcquirer, "seconds", 0.0)


def asked_by_task() -> str:
    """All that waits is due, and the task asks; returns its id."""
    CardCharge.objects.filter(completed_at__isnull=True).update(due_at=Now())
    return str(app.tasks[inquire_due.name].apply(throw=True).id)


def pending(till: Shop, *, reached: bool) -> str:
    """A payment whose process died, before or after its acquirer was asked for the charge."""
    pay_and_die(till, "request_charge", after=reached)
    return str(CardCharge.objects.get().payment_id)


def test_card_inquiry_entries_have_task_and_outcome(till: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    payment_id = pending(till, reached=False)
    first = asked_by_task()
    monkeypatch.setattr(cards, "MISSING_AFTER", timedelta(0))
    second = asked_by_task()
    shown = [each for each in entries(till, payment_id) if each["type"] == "acquirer.inquiry"]
    assert [(each["actor"], each["request_id"]) for each in shown] == [("clock", first), ("clock", second)]
    assert {(each["details"]["acquirer"], each["details"]["said"]) for each in shown} == {
        ("sandbox", "missing")
    }
    assert types(till, payment_id) == [
        "payment.pending",
        "acquirer.inquiry",
        "acquirer.inquiry",
        "payment.failed",
    ]


def test_card_payment_completed_by_inquiry_keeps_its_actor(
    till: Shop, admin_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = f"key:{till.merchant.keys.get().public_id}"
    payment_id = pending(till, reached=True)
    task_id = asked_by_task()
    shown = [(each["type"], each["actor"]) for each in entries(till, payment_id)]
    assert shown == [("payment.pending", key), ("acquirer.inquiry", "clock"), ("payment.succeeded", "clock")]
    first, question, end = entries(till, payment_id)
    assert first["request_id"] == CardCharge.objects.get().request_id != ""
    assert question["request_id"] == end["request_id"] == task_id
    assert question["details"]["said"] == "succeeded"
    assert task_id in read(admin_client, payment_id)
    assert task_id in admin_client.get("/admin/payments/chargeanswer/").content.decode()


def test_charge_answered_at_once_has_no_inquiry_entry(till: Shop) -> None:
    payment_id = till.post(PATH, request()).json()["payment_id"]
    assert types(till, payment_id) == ["payment.pending", "payment.succeeded"]


@pytest.mark.parametrize(
    "attack",
    [
        "UPDATE payments_chargeanswer SET said = 'pending'",
        "DELETE FROM payments_chargeanswer",
        "TRUNCATE payments_chargeanswer",
        "UPDATE payments_cardcharge SET actor = 'key:somebody'",
    ],
)
def test_charge_answers_and_actor_are_append_only(till: Shop, attack: str) -> None:
    pending(till, reached=True)
    asked_by_task()
    assert ChargeAnswer.objects.count() == 1
    with pytest.raises(DatabaseError), transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(attack)


def test_timeline_shows_charge_of_wrong_amount(till: Shop) -> None:
    payment_id = pending(till, reached=False)
    with transaction.atomic():
        cards.complete(
            payment_id, ChargeResult("succeeded", "chrg_1", amount=15_000, currency="THB"), now=clock.now()
        )
    shown = only_entry(till, payment_id, "bank.contradiction")
    assert shown["summary"] == "1,500.00 THB were asked for, and sandbox charged another amount or currency."
    assert (shown["details"]["answer_amount"], shown["details"]["answer_currency"]) == (15_000, "THB")
    found = TransferContradiction.objects.get()
    now = clock.now() + timedelta(seconds=1)
    with acting_as("staff:malee"):
        contradictions.mark_failed(found.id, note="refund rfnd_1", now=now)
    assert types(till, payment_id)[-3:] == ["bank.contradiction", "staff.booked_failed", "payment.failed"]
