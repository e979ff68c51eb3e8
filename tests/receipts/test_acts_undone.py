"""What staff ended by mistake is opened again, says who did so and why, and can be decided anew."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from django.test import Client

from core import clock
from receipts import acts, settling
from receipts.acts import AlreadyDone, NotPossible
from receipts.models import Act, Notice, Receipt, Waiting
from tests.conftest import BankCaller, new_client, open_shop
from tests.console.timeline_cast import types
from tests.receipts.cast import WHY, Till, carry_back, decide, now_of, postings_of
from tests.receipts.staff import page_of, read, staff
from tests.receipts.test_act_races import deciding, done
from tests.receipts.test_exceptions_admin import act_page, buttons
from tests.receipts.test_losses import DONE, LOST, REFUSED, REVERSED, UNDER_WAY, WAITS, Serving, losses
from tests.refunds.test_guard import sqlstate
from tests.threads import at_once

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("books_are_right")]
DISMISSED, INTEGRITY, UNIQUE = ("unmatched", "dismissed"), "23000", "23505"
ACT = """
INSERT INTO receipts_act (subject_id, deed, by, why, round, request_id, at)
VALUES (%s, %s, 'malee', 'a mistake', %s, '', now())
"""


@pytest.fixture
def malee(db: None) -> Client:
    return staff("malee", "view_receipt", "resolve_receipt")


def orphan(till: Till) -> Receipt:
    """A reversal of more than its credit: nobody here can give that."""
    return till.takes_back(till.sold(), 150_001)


def deeds(subject_id: str) -> list[tuple[str, int]]:
    return list(Act.objects.filter(subject_id=subject_id).order_by("id").values_list("deed", "round"))


def test_a_reversal_that_was_dismissed_by_mistake_becomes_a_loss(till: Till, malee: Client) -> None:
    reversal = orphan(till)
    decide("dismiss", reversal)
    assert buttons(malee, reversal.id) == []
    assert "/act/reopen/" in read(malee, page_of(reversal.id))
    said = malee.get(act_page(reversal.id, "reopen")).content.decode()
    assert "It waits for a decision again." in said
    malee.post(act_page(reversal.id, "reopen"), {"why": "the bank insists", "sure": "yes"})
    assert now_of(reversal) == WAITS
    assert Waiting.objects.get().id == reversal.id
    decide("lose", reversal)
    assert (now_of(reversal), losses()) == (LOST, -150_001)
    assert deeds(reversal.id) == [("dismissed", 0), ("reopened", 1), ("lost", 1)]
    opened = Act.objects.get(deed="reopened")
    assert (opened.by, opened.why) == ("malee", "the bank insists")
    page = read(malee, page_of(reversal.id))
    assert all(word in page for word in ("Dismissed", "Reopened", "the bank insists", "Lost"))


def test_what_was_ended_is_found_again_where_it_was_said_and_among_the_acts(
    till: Till, malee: Client
) -> None:
    reversal = orphan(till)
    posted = {"why": "a mistake", "sure": "yes"}
    said = malee.post(act_page(reversal.id, "dismiss"), posted, follow=True).content.decode()
    assert f'<a href="{page_of(reversal.id)}">Show it</a>' in said
    assert f'<a href="{page_of(reversal.id)}">' in read(staff("boss", "view_act"), "/admin/receipts/act/")


def test_a_loss_that_was_none_leaves_the_books_and_can_be_one_after_all(till: Till, malee: Client) -> None:
    reversal = orphan(till)
    decide("lose", reversal)
    said = malee.get(act_page(reversal.id, "reopen")).content.decode()
    assert "The loss of 1,500.01 THB is taken back out of the books" in said
    decide("reopen", reversal)
    assert (now_of(reversal), losses()) == (WAITS, 0)
    assert postings_of(reversal.id) == [("lost", 150_001), ("recovered", 150_001)]
    for _ in range(2):
        decide("lose", reversal)
        assert (now_of(reversal), losses()) == (LOST, -150_001)
        decide("reopen", reversal)
        assert (now_of(reversal), losses()) == (WAITS, 0)
    decide("dismiss", reversal)
    assert deeds(reversal.id)[-1] == ("dismissed", 3)
    assert not Waiting.objects.exists()


def test_what_can_be_taken_when_it_is_opened_again_is_taken(till: Till, served_by: Serving) -> None:
    """It was dismissed while the money was on its way back to the payer, which then failed."""
    served_by(sends=[UNDER_WAY], inquiries=[UNDER_WAY, REFUSED])
    credit = till.unmatched()
    decide("send_back", credit)
    carry_back()
    reversal = till.takes_back(credit)
    decide("dismiss", reversal)
    carry_back(2)
    assert (now_of(credit), now_of(reversal)) == (("unmatched", ""), DISMISSED)
    decide("reopen", reversal)
    assert (now_of(credit), now_of(reversal)) == (("unmatched", "taken_back"), REVERSED)


def test_a_message_is_opened_again_and_dismissed_again(till: Till, malee: Client) -> None:
    till.bank.post(b"garbage")
    notice = Notice.objects.get()
    act: dict[str, Any] = {"by": "malee", "why": WHY, "now": clock.now()}
    for number in range(2):
        acts.dismiss(notice.id, **act)
        assert not Waiting.objects.exists()
        assert "/act/reopen/" in read(malee, page_of(notice.id))
        acts.reopen(notice.id, **act)
        assert (Waiting.objects.get().id, buttons(malee, notice.id)) == (notice.id, ["dismiss"])
        assert deeds(notice.id)[-2:] == [("dismissed", number), ("reopened", number + 1)]


def test_the_timeline_tells_that_it_was_a_mistake(till: Till) -> None:
    code = till.shop.qr_code()
    told = till.bank.notice(code)
    for changes in ({}, {"amount": "1.23"}):
        till.bank.post(told | changes)
    notice = Notice.objects.get(verdict="conflict")
    for act in (acts.dismiss, acts.reopen):
        act(notice.id, by="malee", why=WHY, now=clock.now())
    assert types(till.shop, code["payment_id"])[-2:] == ["staff.dismissed", "staff.reopened"]


def test_nothing_else_is_opened_again(till: Till, served_by: Serving) -> None:
    served_by(sends=[DONE])
    till.bank.post(b"garbage")
    sent_back, waits = till.unmatched(), orphan(till)
    decide("send_back_by_hand", sent_back, bank_reference="b")
    subjects = [till.sold().id, sent_back.id, waits.id, Notice.objects.get(verdict="unreadable").id]
    subjects += [till.refund(till.paid())["refund_id"], Notice.objects.filter(verdict="new")[0].id]
    for subject_id in subjects:
        with pytest.raises(NotPossible, match="Only what was dismissed"):
            acts.reopen(subject_id, by="malee", why=WHY, now=clock.now())
    assert not Act.objects.filter(deed="reopened").exists()


def test_the_second_to_open_it_is_told_who_was_first(till: Till) -> None:
    reversal = orphan(till)
    decide("dismiss", reversal)
    decide("reopen", reversal)
    with pytest.raises(AlreadyDone, match="malee decided already: reopened"):
        decide("reopen", reversal, by="somsak")


def test_whoever_may_not_decide_may_not_open_it(till: Till) -> None:
    decide("dismiss", reversal := orphan(till))
    onlooker = staff("onlooker", "view_receipt")
    assert "/act/reopen/" not in read(onlooker, page_of(reversal.id))
    assert onlooker.post(act_page(reversal.id, "reopen"), {"why": "x", "sure": "yes"}).status_code == 403
    assert now_of(reversal) == DISMISSED


def test_the_database_opens_only_what_was_ended_and_once(till: Till) -> None:
    reversal = orphan(till)
    for deed, round in (("reopened", 0), ("reopened", 1), ("dismissed", 1)):
        assert sqlstate(ACT, reversal.id, deed, round) == INTEGRITY, (deed, round)
    decide("dismiss", reversal)
    for deed, round, state in (
        ("dismissed", 0, UNIQUE), ("lost", 0, UNIQUE), ("lost", 1, INTEGRITY), ("reopened", 2, INTEGRITY),
    ):  # fmt: skip
        assert sqlstate(ACT, reversal.id, deed, round) == state, (deed, round)
    decide("reopen", reversal)
    for deed, round in (("reopened", 1), ("reopened", 2), ("dismissed", 0), ("dismissed", 2)):
        assert sqlstate(ACT, reversal.id, deed, round) == INTEGRITY, (deed, round)


# --- at the same moment ------------------------------------------------------------------------------------

races = pytest.mark.django_db(transaction=True)
ROUNDS = 10


@pytest.fixture
def busy() -> Till:
    return Till(open_shop("Race"), BankCaller(new_client()))


def opening(subject_id: str, act: Callable[..., Any]) -> Callable[[], Any]:
    def click() -> Any:
        try:
            return act(subject_id, by="malee", why=WHY, now=clock.now())
        except NotPossible as refusal:
            return refusal

    return click


@races
@pytest.mark.parametrize("ended", ["dismiss", "lose"])
def test_of_eight_who_open_it_one_does(busy: Till, ended: str) -> None:
    reversal = orphan(busy)
    decide(ended, reversal)
    assert done(at_once(*[deciding("reopen", reversal)] * 8)) == 1
    assert (now_of(reversal), losses()) == (WAITS, 0)


@races
def test_of_eight_who_open_a_message_one_does(busy: Till) -> None:
    busy.bank.post(b"garbage")
    notice_id = Notice.objects.get().id
    acts.dismiss(notice_id, by="malee", why=WHY, now=clock.now())
    assert done(at_once(*[opening(notice_id, acts.reopen)] * 8)) == 1
    assert done(at_once(*[opening(notice_id, acts.dismiss)] * 8)) == 1
    assert not Waiting.objects.exists()


@races
def test_opened_as_it_is_lost_it_is_what_the_last_act_says(busy: Till) -> None:
    reversal = orphan(busy)
    decide("dismiss", reversal)
    for _ in range(ROUNDS):
        at_once(deciding("reopen", reversal), deciding("lose", reversal), deciding("reopen", reversal))
        is_lost = deeds(reversal.id)[-1][0] == "lost"
        assert (now_of(reversal), losses()) == ((LOST, -150_001) if is_lost else (WAITS, 0))
        if not is_lost:
            decide("dismiss", reversal)


@races
def test_opened_as_the_money_comes_back_it_is_taken(busy: Till, served_by: Serving) -> None:
    for _ in range(ROUNDS):
        served_by(sends=[UNDER_WAY], inquiries=[REFUSED])
        credit = busy.unmatched()
        decide("send_back", credit)
        carry_back()
        reversal = busy.takes_back(credit)
        decide("lose", reversal)
        at_once(deciding("reopen", reversal), partial(settling.run_due, now=clock.now))
        assert (now_of(reversal), now_of(credit)[1], losses()) == (REVERSED, "taken_back", 0)
