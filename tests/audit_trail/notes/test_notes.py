"""Notes of staff: who reads them, who does not, and what nobody can change."""

import re
from datetime import datetime, timedelta
from html import unescape
from typing import Any

import pytest
import time_machine
from django.apps import apps
from django.contrib.admin.utils import quote
from django.test import Client
from django.urls import reverse

from audit_trail.acts import Act
from audit_trail.models import AuditRecord
from audit_trail.note_models import Note
from audit_trail.notes import services
from core import clock, ids
from operations.data_protection import erasure
from payments.models import Payment
from reconciliation.models import ReconciliationException
from refunds.models import Refund
from tests.audit_trail.notes.conftest import People
from tests.concurrency import run_concurrently
from tests.conftest import Shop
from tests.reconciliation.builders import Seller, staff_client
from tests.shop.people import person_of, row_url
from tests.sqlstates import CHECK_VIOLATION, NOT_ALLOWED, UNIQUE_VIOLATION, setting, sqlstate
from tests.staff_acts import act_form, send_act
from withdrawals.models import Withdrawal

pytestmark = [pytest.mark.slow, pytest.mark.django_db]
TEXT = "Khun Anong called twice.\nShe wants her money <b>today</b>."


def page_of(label: str, key: str) -> str:
    return reverse(f"admin:{label.replace('.', '_')}_change", args=[quote(key)])


def read(client: Client, label: str, key: str) -> str:
    answer = client.get(page_of(label, key))
    assert answer.status_code == 200
    return unescape(re.sub(r"\s+", " ", answer.content.decode()))


def send(client: Client, label: str, key: str, slug: str, **values: Any) -> str:
    answer = send_act(client, apps.get_model(label), key, slug, **{"text": TEXT} | values)
    assert answer.status_code == 200
    return unescape(re.sub(r"\s+", " ", answer.content.decode()))


def insert(**changes: Any) -> str | None:
    """The SQLSTATE for a note that is written without our code."""
    now = clock.now()
    values = {
        "id": ids.new("nte_", now),
        "subject_id": "pay_x",
        "object_type": "payments.payment",
        "object_id": "pay_x",
        "text": TEXT,
        "actor": "staff:somsri",
        "created_at": now,
        "handed_to": None,
        "answer_id": None,
    } | changes
    marks = ", ".join(["%s"] * len(values))
    return sqlstate(
        f"INSERT INTO audit_trail_note ({', '.join(values)}) VALUES ({marks})",
        *values.values(),
    )


def test_a_note_is_on_the_page_of_each_thing_with_its_time_and_name(
    support: Client, things: dict[str, Any], noon: datetime
) -> None:
    for label, key in things.items():
        with time_machine.travel(noon, tick=False):
            page = send(support, label, key, "note")
        assert "Write a note: done." in page, label
        assert '<strong>somsri</strong> <span class="quiet">2026-11-21 12:00:00</span>' in page, label
        assert "Khun Anong called twice.<br>She wants her money <b>today</b>." in page, label
    assert Note.objects.count() == len(things)
    raw = support.get(page_of("payments.payment", things["payments.payment"])).content.decode()
    assert "&lt;b&gt;today" in raw


def test_notes_of_a_withdrawal_are_on_the_page_of_its_approval(
    support: Client, things: dict[str, Any]
) -> None:
    send(support, "withdrawals.withdrawal", things["withdrawals.withdrawal"], "note")
    assert "Khun Anong" in read(support, "approvals.approval", things["approvals.approval"])


def test_audit_trail_records_a_note_without_its_text(support: Client, payment: Payment) -> None:
    send(support, "payments.payment", payment.pk, "note")
    record = AuditRecord.objects.get(act=Act.NOTED)
    assert (record.object_id, record.actor, record.reason) == (payment.pk, "staff:somsri", "")
    assert record.after == {"note": Note.objects.get().pk}


def test_timeline_of_staff_has_the_notes_of_the_payment_and_its_refunds(
    support: Client, things: dict[str, Any]
) -> None:
    send(support, "refunds.refund", things["refunds.refund"], "note")
    page = read(support, "payments.payment", things["payments.payment"])
    assert "<strong>staff.note</strong><br>Khun Anong" in page


def test_merchant_reads_no_note(shop: Shop, support: Client, things: dict[str, Any]) -> None:
    key = things["payments.payment"]
    send(support, "payments.payment", key, "note")
    send(support, "refunds.refund", things["refunds.refund"], "ask-finance")
    for path in (f"payments/{key}", f"payments/{key}/timeline", "refunds", "withdrawals", "events"):
        answer = shop.get(f"/v1/{path}")
        assert answer.status_code == 200
        assert "Anong" not in answer.content.decode() and "staff.note" not in answer.content.decode(), path
    owner = person_of(shop)
    for row in (Payment.objects.get(pk=key), Refund.objects.get(), Withdrawal.objects.get()):
        answer = owner.get(row_url(row))
        assert answer.status_code == 200
        assert "Anong" not in answer.content.decode() and "staff.note" not in answer.content.decode()


def test_viewer_sees_that_there_are_notes_and_no_text(
    people: People, support: Client, payment: Payment
) -> None:
    send(support, "payments.payment", payment.pk, "hand-over", to="role:finance")
    viewer = people("wichai", "viewer")
    page = read(viewer, "payments.payment", payment.pk)
    inbox = viewer.get("/admin/audit_trail/note/").content.decode()
    assert "somsri" in page and "somsri" in inbox
    for text in (page, inbox):
        assert "Anong" not in text and "hidden: you may not see personal data" in text
    assert "Write a note" not in page


def test_who_may_not_view_notes_sees_none(support: Client, payment: Payment) -> None:
    send(support, "payments.payment", payment.pk, "note")
    cashier = staff_client("cashier", "view_payment", "view_personal_data")
    page = read(cashier, "payments.payment", payment.pk)
    assert "Anong" not in page and "staff.note" not in page


@pytest.mark.parametrize(
    ("slug", "values", "message"),
    [
        ("note", {"text": "  "}, "This field is required."),
        ("note", {"text": "x" * 2_001}, "at most 2000 characters"),
        ("note", {"text": "a\0b"}, "Null characters are not allowed."),
        ("note", {"token": "x"}, "Open the page again."),
        ("hand-over", {"to": ""}, "This field is required."),
        ("hand-over", {"to": "role:nobody"}, "Select a valid choice."),
        ("hand-over", {"to": "role:viewer"}, "Select a valid choice."),
        ("hand-over", {"to": "staff:wichai"}, "Select a valid choice."),
        ("ask-finance", {"text": ""}, "This field is required."),
    ],
)
def test_wrong_values_are_explained_and_change_nothing(
    people: People, support: Client, payment: Payment, slug: str, values: dict[str, Any], message: str
) -> None:
    people("wichai", "viewer")
    assert message in send(support, "payments.payment", payment.pk, slug, **values)
    assert not Note.objects.exists()
    assert not AuditRecord.objects.filter(act__in=[Act.NOTED, Act.HANDED_OVER]).exists()


def test_longest_note_is_kept_whole(support: Client, payment: Payment) -> None:
    send(support, "payments.payment", payment.pk, "note", text="ก" * 2_000)
    assert Note.objects.get().text == "ก" * 2_000


def test_same_form_twice_writes_one_note(support: Client, payment: Payment) -> None:
    form = act_form(text=TEXT)
    for message in ("done.", "This was done already"):
        page = send(support, "payments.payment", payment.pk, "note", **form)
        assert message in page
    assert Note.objects.count() == 1


def test_person_writes_at_most_sixty_notes_an_hour(
    support: Client, finance: Client, payment: Payment, noon: datetime
) -> None:
    with time_machine.travel(noon, tick=False) as moved:
        for _ in range(services.MAX_NOTES):
            assert insert(created_at=noon) is None
        assert insert(created_at=noon) == CHECK_VIOLATION
        assert "60 notes within an hour" in send(support, "payments.payment", payment.pk, "note")
        assert Note.objects.count() == 60
        send(finance, "payments.payment", payment.pk, "note")
        moved.shift(timedelta(hours=1))
        send(support, "payments.payment", payment.pk, "note")
    assert Note.objects.count() == 62


@pytest.mark.django_db(transaction=True)
def test_notes_of_one_person_at_the_same_moment_keep_the_limit(noon: datetime) -> None:
    for _ in range(services.MAX_NOTES - 1):
        assert insert(created_at=noon) is None
    refusals = run_concurrently(*[lambda: insert(created_at=noon)] * 4)
    assert sorted(refusals, key=str) == [CHECK_VIOLATION] * 3 + [None]


@pytest.mark.parametrize(
    "changes",
    [
        {"text": ""},
        {"text": " \n"},
        {"text": "x" * 2_001},
        {"actor": "key:ab12cd34"},
        {"actor": "person:malee"},
        {"actor": ""},
        {"handed_to": "finance"},
        {"handed_to": ""},
        {"handed_to": "role:"},
    ],
)
def test_database_takes_only_texts_of_staff(changes: dict[str, Any]) -> None:
    assert insert(**changes) == CHECK_VIOLATION


def test_database_keeps_a_note_as_it_was_written(support: Client, payment: Payment) -> None:
    send(support, "payments.payment", payment.pk, "note")
    values = {"text": "x", "actor": "staff:malee", "subject_id": "pay_y", "object_id": "pay_y"}
    values |= {"handed_to": "role:finance", "object_type": "x", "request_id": "x", "created_at": "2020-01-01"}
    for column, value in values.items():
        change = f"UPDATE audit_trail_note SET {column} = %s"
        assert sqlstate(change, value) == CHECK_VIOLATION, column
    for statement in ("DELETE FROM audit_trail_note", "TRUNCATE audit_trail_note CASCADE"):
        assert sqlstate(statement) == NOT_ALLOWED
    with setting("erasing"):
        assert sqlstate("UPDATE audit_trail_note SET text = 'x'") == CHECK_VIOLATION
        assert sqlstate("UPDATE audit_trail_note SET text = '', actor = 'x'") == CHECK_VIOLATION
        assert sqlstate("UPDATE audit_trail_note SET text = ''") is None


def test_database_keeps_the_answer_of_a_hand_over(noon: datetime) -> None:
    """One hand-over of a thing is open. It ends once, with a later note about the same thing."""
    asked, other, earlier, answer = (ids.new("nte_", noon) for _ in range(4))
    assert insert(id=asked, created_at=noon, handed_to="role:finance") is None
    assert insert(handed_to="staff:malee") == UNIQUE_VIOLATION
    assert insert(id=other, subject_id="pay_y", created_at=noon) is None
    assert insert(id=earlier, created_at=noon - timedelta(seconds=1)) is None
    assert insert(id=answer, created_at=noon) is None
    assert insert(answer_id=answer) == CHECK_VIOLATION
    change = "UPDATE audit_trail_note SET answer_id = %s WHERE id = %s"
    for wrong in (asked, other, earlier):
        assert sqlstate(change, wrong, asked) == CHECK_VIOLATION
    assert sqlstate(change, answer, asked) is None
    for later in (None, other):
        assert sqlstate(change, later, asked) == CHECK_VIOLATION


def test_erasure_of_a_payer_empties_notes_about_their_money(support: Client, seller: Seller) -> None:
    paid, other = (Payment.objects.get(pk=seller.paid()) for _ in range(2))
    for each in (paid, other):
        send(support, "payments.payment", each.pk, "note")
    bank_transaction = paid.bank_transactions.get()
    counts = erasure.erase(erasure.select([bank_transaction.pk]))
    assert counts["audit_trail.note"] == 1
    assert (Note.objects.get(subject_id=paid.pk).text, Note.objects.get(subject_id=other.pk).text) == (
        "",
        TEXT,
    )
    page = read(support, "payments.payment", paid.pk)
    assert "(erased)" in page and "Anong" not in page


def test_note_about_an_exception_stays_when_it_was_resolved(
    support: Client, finance: Client, seller: Seller
) -> None:
    exception = seller.unmatched()
    send(support, "reconciliation.reconciliationexception", exception.pk, "note")
    send_act(finance, ReconciliationException, exception.pk, "dismiss")
    page = send(
        finance, "reconciliation.reconciliationexception", exception.pk, "note", text="It was a test."
    )
    assert "Khun Anong" in page and "It was a test." in page
