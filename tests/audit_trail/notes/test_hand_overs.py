"""Hand-overs to a colleague or a role: the inbox, *Ask finance*, answers, and who may act instead."""

from collections import Counter
from datetime import datetime, timedelta
from typing import Any

import pytest
import time_machine
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext

from audit_trail.acts import Act, ActRefused
from audit_trail.models import AuditRecord
from audit_trail.note_models import Note
from audit_trail.notes import services
from core import clock
from payments.models import Payment
from tests.audit_trail.notes.conftest import People
from tests.audit_trail.notes.test_notes import insert, read, send
from tests.concurrency import run_concurrently
from tests.console.home.test_home import notice, shown
from tests.console.lists.query_plans import unbounded
from tests.context import acting_as
from tests.reconciliation.builders import Seller

pytestmark = [pytest.mark.slow, pytest.mark.django_db]
INBOX, EXCEPTIONS, APPROVALS = (
    f"/admin/{path}/"
    for path in ("audit_trail/note", "reconciliation/reconciliationexception", "approvals/approval")
)
PAYMENT, EXCEPTION = "payments.payment", "reconciliation.reconciliationexception"


def listed(client: Client, address: str, handed_to: str = "") -> list[str]:
    answer: Any = client.get(address, {"handed_to": handed_to} if handed_to else {})
    assert answer.status_code == 200
    return [getattr(row, "subject_id", row.pk) for row in answer.context_data["cl"].result_list]


def test_hand_over_to_a_person_is_in_the_inbox_of_this_person_alone(
    support: Client, people: People, payment: Payment
) -> None:
    prasit, finance = people("prasit", "finance"), people("malee", "finance")
    page = send(support, PAYMENT, payment.pk, "hand-over", to="staff:prasit")
    assert "Handed over to prasit on" in page and "<strong>somsri</strong> → <strong>prasit</strong>" in page
    assert (listed(prasit, INBOX, "me"), listed(prasit, INBOX, "team")) == ([payment.pk], [])
    assert listed(finance, INBOX, "me") == listed(finance, INBOX, "team") == []
    assert listed(finance, INBOX) == listed(support, INBOX, "asked") == [payment.pk]
    record = AuditRecord.objects.get(act=Act.HANDED_OVER)
    assert record.after == {"note": Note.objects.get().pk, "handed_to": "prasit"}


def test_form_offers_people_and_roles_that_can_answer(
    support: Client, people: People, payment: Payment
) -> None:
    people("wichai", "viewer")
    User.objects.create_user("gone", is_staff=True, is_superuser=True, is_active=False)
    form = support.get(
        f"/admin/payments/payment/{payment.pk.replace('_', '_5F')}/do/hand-over/"
    ).content.decode()
    for offered in ("role:finance", "role:support", "role:admin", "staff:somsri"):
        assert f'value="{offered}"' in form
    for other in ("role:viewer", "staff:wichai", "staff:gone"):
        assert other not in form


def test_support_asks_finance_and_finance_answers(support: Client, finance: Client, seller: Seller) -> None:
    exception = seller.mismatch()
    page = read(support, EXCEPTION, exception.pk)
    assert "Possible now, for another role: Accept" in page and "(finance)" in page
    assert "Ask finance" in page and "No act is possible now" not in page
    form = support.get(f"{EXCEPTIONS}{exception.pk.replace('_', '_5F')}/do/ask-finance/").content.decode()
    assert "Finance sees in its inbox: your text, your name somsri, the time, and a link to this: " in form
    send(support, EXCEPTION, exception.pk, "ask-finance")
    assert listed(finance, INBOX, "team") == [exception.pk] and listed(finance, INBOX, "me") == []
    assert listed(support, INBOX, "team") == []
    assert (
        "somsri wrote: “Khun Anong called twice."
        in finance.get(f"{EXCEPTIONS}{exception.pk.replace('_', '_5F')}/do/answer/").content.decode()
    )
    page = send(finance, EXCEPTION, exception.pk, "answer", text="She gets it tomorrow.")
    assert "She gets it tomorrow." in page and "not answered yet" not in page
    assert listed(finance, INBOX) == []
    inbox = support.get(INBOX, {"handed_to": "asked"}).content.decode()
    assert "malee: She gets it tomorrow." in inbox
    # There is nothing left to answer.
    assert (
        "This is not possible now."
        in support.get(
            f"{EXCEPTIONS}{exception.pk.replace('_', '_5F')}/do/answer/", follow=True
        ).content.decode()
    )
    assert AuditRecord.objects.filter(act=Act.ANSWERED, actor="staff:malee").count() == 1


def test_a_plain_note_leaves_the_hand_over_open(support: Client, finance: Client, payment: Payment) -> None:
    send(support, PAYMENT, payment.pk, "ask-finance")
    send(finance, PAYMENT, payment.pk, "note")
    assert listed(finance, INBOX, "team") == [payment.pk]


def test_next_hand_over_takes_the_place_of_the_one_before(
    support: Client, finance: Client, people: People, payment: Payment
) -> None:
    prasit = people("prasit", "finance")
    send(support, PAYMENT, payment.pk, "ask-finance")
    send(finance, PAYMENT, payment.pk, "hand-over", to="staff:prasit", text="Please look.")
    first, second = Note.objects.order_by("created_at", "id")
    assert first.answer == second and second.answer is None
    assert (listed(prasit, INBOX, "me"), listed(prasit, INBOX, "team")) == ([payment.pk], [])


def test_two_answers_at_once_are_one_and_so_are_two_hand_overs(payment: Payment, people: People) -> None:
    people("somsri", "support")
    with acting_as("staff:somsri"):
        for act, expected in ((Act.HANDED_OVER, 1), (Act.ANSWERED, 2)):
            to = "role:finance" if act == Act.HANDED_OVER else None
            services.write(act, payment, "x", clock.now(), object_type=PAYMENT, handed_to=to)
            assert Note.objects.count() == expected
        with pytest.raises(ActRefused, match="A colleague has answered it"):
            services.write(Act.ANSWERED, payment, "x", clock.now(), object_type=PAYMENT)
    assert Note.objects.count() == 2


def test_answer_that_waited_for_the_hand_over_is_not_before_it(payment: Payment, noon: datetime) -> None:
    earlier = noon - timedelta(seconds=1)
    with acting_as("staff:malee"), transaction.atomic():
        services.write(Act.HANDED_OVER, payment, "x", noon, object_type=PAYMENT, handed_to="role:finance")
        answer = services.write(Act.ANSWERED, payment, "x", earlier, object_type=PAYMENT)
        connection.check_constraints()
    assert answer.created_at == noon


@pytest.mark.django_db(transaction=True)
def test_hand_overs_of_many_at_the_same_moment_leave_one_open(shop: Any) -> None:
    payment = Payment.objects.get(pk=shop.qr_code()["payment_id"])
    names = [f"person{number}" for number in range(4)]
    for name in names:
        User.objects.create_user(name, is_staff=True)

    def hand_over(name: str) -> bool:
        with acting_as(f"staff:{name}"):
            try:
                services.write(
                    Act.HANDED_OVER, payment, "x", clock.now(), object_type=PAYMENT, handed_to="role:finance"
                )
            except ActRefused:
                return False
            return True

    def answer(name: str) -> bool:
        with acting_as(f"staff:{name}"):
            try:
                services.write(Act.ANSWERED, payment, "x", clock.now(), object_type=PAYMENT)
            except ActRefused:
                return False
            return True

    done = run_concurrently(*(lambda name=name: hand_over(name) for name in names))
    assert any(done) and Note.objects.open().count() == 1
    assert Note.objects.count() == sum(done)
    answered = run_concurrently(*(lambda name=name: answer(name) for name in names))
    assert Counter(answered) == {True: 1, False: 3}
    assert not Note.objects.open().exists()


def test_lists_show_what_is_handed_over_to_me_my_team_and_anybody(
    support: Client, finance: Client, things: dict[str, Any], seller: Seller
) -> None:
    other = seller.unmatched()
    exception, approval = things[EXCEPTION], things["approvals.approval"]
    send(support, EXCEPTION, exception, "hand-over", to="staff:malee")
    send(support, "withdrawals.withdrawal", things["withdrawals.withdrawal"], "ask-finance")
    assert listed(finance, EXCEPTIONS, "me") == [exception]
    assert listed(finance, EXCEPTIONS, "team") == []
    assert listed(finance, EXCEPTIONS, "anybody") == [exception]
    assert set(listed(finance, EXCEPTIONS)) == {exception, other.pk}
    assert listed(finance, APPROVALS, "me") == []
    assert listed(finance, APPROVALS, "team") == [things["withdrawals.withdrawal"]]
    assert "malee" in finance.get(EXCEPTIONS).content.decode()
    # A link of the inbox leads to the page on which the note was written.
    send(finance, "approvals.approval", approval, "hand-over", to="role:admin")
    assert (
        f"/admin/approvals/approval/{approval.replace('_', '_5F')}/change/"
        in support.get(INBOX).content.decode()
    )


def test_home_shows_what_waits_for_me_and_my_team_with_its_age(
    support: Client, finance: Client, things: dict[str, Any], noon: datetime
) -> None:
    with time_machine.travel(noon, tick=False) as moved:
        assert notice(shown(finance), "For you") == ("good", "none")
        send(support, PAYMENT, things[PAYMENT], "ask-finance")
        moved.shift(timedelta(hours=3))
        send(support, EXCEPTION, things[EXCEPTION], "hand-over", to="staff:malee")
        page = shown(finance)
        assert notice(page, "For your team") == ("wait", "1 waits, the oldest for 3 hours")
        assert notice(page, "For you") == ("wait", "1 waits, the oldest for less than a second")
        moved.shift(timedelta(days=1, seconds=1))
        assert notice(shown(finance), "For your team")[0] == "bad"
        assert notice(shown(support), "For your team") == ("good", "none")
        assert '<span class="state bad">1 day' in finance.get(INBOX).content.decode()


def test_page_names_the_roles_that_may_act(
    support: Client, finance: Client, people: People, things: dict[str, Any]
) -> None:
    assert "Possible now, for another role: Refund (finance)." in read(support, PAYMENT, things[PAYMENT])
    approval = read(support, "approvals.approval", things["approvals.approval"])
    assert "Possible now, for another role: Approve, Reject (finance). You can: <a" in approval
    viewer = read(people("wichai", "viewer"), EXCEPTION, things[EXCEPTION])
    assert "Send back, " in viewer and "(finance)" in viewer and "You can:" not in viewer
    assert "for another role" not in read(finance, PAYMENT, things[PAYMENT])


def test_inbox_reads_by_an_index(support: Client, payment: Payment) -> None:
    insert(handed_to="role:finance")
    for chosen in ("me", "team", "asked", ""):
        with CaptureQueriesContext(
            connection,
        ) as queries:
            listed(support, INBOX, chosen)
        of_notes = [each["sql"] for each in queries if 'FROM "audit_trail_note"' in each["sql"]]
        assert of_notes
        for sql in of_notes:
            assert unbounded(sql) == [], sql
