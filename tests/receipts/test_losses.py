"""What a bank took back when it had left already is the operator's loss, until it can be taken after all."""

from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from banks import OrderNotice, Word
from core import clock
from core.clock import BANGKOK
from receipts import inbox, settling
from receipts.acts import AlreadyDone, NotPossible
from receipts.models import Act, Deed, Receipt, Waiting
from receipts.statements.importing import Summary
from tests.conftest import BankCaller, new_client, open_shop
from tests.receipts.cast import (
    WHY,
    Till,
    carry_back,
    decide,
    now_of,
    parsed,
    postings_of,
    return_of,
    reversal_of,
    suspense,
)
from tests.receipts.staff import LIST, page_of, read, staff
from tests.receipts.statements.cast import bot, line_of, load
from tests.threads import at_once
from tests.transfers.cast import Bank
from transactions import accounts
from transactions.postings import read as read_accounts
from transfers import services as transfers

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("books_are_right")]
Serving = Callable[..., Bank]
DONE, REFUSED, UNDER_WAY = Word("succeeded", "b-1"), Word("failed", "b-1"), Word("processing", "b-1")
LOST, REVERSED, WAITS = ("unmatched", "lost"), ("reversed", ""), ("unmatched", "")


def losses() -> int:
    return read_accounts([accounts.LOSSES], None).get(accounts.LOSSES, 0)


def taken_twice(till: Till, served_by: Serving) -> tuple[Receipt, Receipt]:
    """Money that arrived at its payer and was taken back as well: its credit, and the reversal that waits."""
    served_by(sends=[UNDER_WAY], inquiries=[DONE])
    credit = till.unmatched()
    decide("send_back", credit)
    carry_back()
    reversal = till.takes_back(credit)
    carry_back()
    assert (now_of(credit), now_of(reversal)) == (("unmatched", "sent_back"), WAITS)
    return credit, reversal


def test_money_that_left_twice_is_booked_as_a_loss(till: Till, served_by: Serving) -> None:
    _, reversal = taken_twice(till, served_by)
    decide("lose", reversal)
    assert (now_of(reversal), losses(), suspense()) == (LOST, -150_000, 0)
    assert postings_of(reversal.id) == [("lost", 150_000)]
    act = Act.objects.get(subject_id=reversal.id)
    assert (act.deed, act.by, act.why, act.at) == (Deed.LOST, "malee", WHY, reversal.resolved_at)
    assert not Waiting.objects.exists()


def test_a_merchant_is_not_charged_for_what_a_bank_takes_beyond_its_credit(till: Till) -> None:
    credit = till.sold()
    reversal = till.takes_back(credit, 150_001)
    decide("lose", reversal)
    assert (now_of(reversal), losses(), till.held()) == (
        LOST,
        -150_001,
        {"available": 150_000, "reserved": 0},
    )
    assert till.shop.payment(str(credit.payment_id))["status"] == "succeeded"


def test_a_loss_is_booked_once_and_a_second_click_is_told_who_was_first(
    till: Till, served_by: Serving
) -> None:
    _, reversal = taken_twice(till, served_by)
    decide("lose", reversal)
    for deed in ("lose", "dismiss"):
        with pytest.raises(AlreadyDone, match="malee decided already: lost"):
            decide(deed, reversal, by="somsak")
    assert losses() == -150_000
    dismissed = till.takes_back(till.sold(), 150_001)
    decide("dismiss", dismissed)
    with pytest.raises(AlreadyDone, match="malee decided already: dismissed"):
        decide("lose", dismissed)


def test_neither_money_nor_what_was_taken_back_is_a_loss(till: Till) -> None:
    credit = till.sold()
    for receipt in (till.unmatched(), credit, till.takes_back(credit)):
        before = now_of(receipt)
        with pytest.raises(NotPossible, match="Only what a bank took back"):
            decide("lose", receipt)
        assert (now_of(receipt), losses()) == (before, 0)


def test_what_can_be_taken_back_is_taken_and_is_no_loss(till: Till) -> None:
    """The process ended after it had kept the bank's word."""
    credit = till.sold()
    notice = parsed(reversal_of(credit))
    reversal = inbox.accept(bank="sandbox", body=b"{}", notice=notice, now=clock.now())
    with pytest.raises(NotPossible):
        decide("lose", reversal)
    assert (now_of(reversal), losses(), till.held()) == (REVERSED, 0, {"available": 0, "reserved": 0})


# --- a loss ends -------------------------------------------------------------------------------------------


def test_a_loss_ends_when_the_return_comes_back_to_us(till: Till, served_by: Serving) -> None:
    credit, reversal = taken_twice(till, served_by)
    decide("lose", reversal)
    transfers.hear(OrderNotice(return_of(credit).id, "returned"), settling.OWNER, now=clock.now())
    assert (now_of(reversal), now_of(credit)) == (REVERSED, ("unmatched", "taken_back"))
    assert (losses(), suspense()) == (0, 0)
    assert sorted(postings_of(reversal.id)) == [
        ("lost", 150_000), ("recovered", 150_000), ("reversal", 150_000),
    ]  # fmt: skip


def test_the_banks_word_again_changes_nothing_about_a_loss(till: Till, served_by: Serving) -> None:
    credit, reversal = taken_twice(till, served_by)
    decide("lose", reversal)
    assert till.takes_back(credit, paid_at=reversal.paid_at.astimezone(BANGKOK).isoformat()).id == reversal.id
    assert (now_of(reversal), losses()) == (LOST, -150_000)


def test_a_loss_that_was_booked_too_early_ends_when_the_return_fails(till: Till, served_by: Serving) -> None:
    served_by(sends=[UNDER_WAY], inquiries=[REFUSED])
    decide("send_back", credit := till.unmatched())
    carry_back()
    decide("lose", reversal := till.takes_back(credit))
    assert losses() == -150_000
    carry_back()
    assert (now_of(reversal), losses(), suspense()) == (REVERSED, 0, 0)


@pytest.mark.parametrize("by_line", [False, True])
def test_a_loss_ends_when_its_credit_is_told_after_all(till: Till, by_line: bool) -> None:
    code, paid_at = till.shop.qr_code(), clock.now().replace(microsecond=0)
    notice = till.bank.notice(code, paid_at=paid_at)
    till.bank.post(notice | {"type": "reversal"})
    reversal = Receipt.objects.get()
    decide("lose", reversal)
    told: Summary | Any = load(bot(line_of(code, paid_at))) if by_line else till.bank.post(notice)
    assert told and (now_of(reversal), losses()) == (REVERSED, 0)
    assert till.held() == {"available": 0, "reserved": 0}
    assert till.shop.payment(code["payment_id"])["status"] == "refunded"


def test_a_part_that_is_lost_leaves_the_rest_to_be_sent_back_or_accepted(
    till: Till, served_by: Serving
) -> None:
    served_by(sends=[DONE])
    sent, accepted = till.unmatched(), till.mismatch(149_900)
    for credit in (sent, accepted):
        decide("lose", till.takes_back(credit, 50_000))
    assert losses() == -100_000
    decide("send_back", sent)
    decide("accept", accepted)
    carry_back()
    assert (now_of(sent)[1], losses(), suspense()) == ("sent_back", -50_000, 0)
    assert till.held() == {"available": 99_900, "reserved": 0}, "what is the merchant's now, the bank took"


# --- at the console, and at once ---------------------------------------------------------------------------


def test_staff_book_it_at_the_console_and_say_why(till: Till, served_by: Serving) -> None:
    _, reversal = taken_twice(till, served_by)
    malee: Client = staff("malee", "resolve_receipt")
    assert "Book as our loss" in read(malee, page_of(reversal.id))
    act = f"{LIST}{reversal.id}/act/lose/"
    assert "1,500.00 THB have left our account at sandbox a second time" in read(malee, act)
    assert malee.post(act, {"why": ""}).status_code == 200
    assert losses() == 0
    assert malee.post(act, {"why": "The bank confirmed it."}, follow=True).status_code == 200
    assert (losses(), Act.objects.latest("id").why) == (-150_000, "The bank confirmed it.")
    assert "decided already" in malee.post(act, {"why": "Again."}, follow=True).content.decode()
    assert losses() == -150_000


@pytest.mark.django_db(transaction=True)
def test_of_eight_clicks_one_books_it(served_by: Serving) -> None:
    till = Till(open_shop("Race"), BankCaller(new_client()))
    _, reversal = taken_twice(till, served_by)

    def click() -> bool:
        try:
            decide("lose", reversal)
        except AlreadyDone:
            return False
        return True

    assert sum(at_once(*[click] * 8)) == 1
    assert (losses(), Act.objects.filter(subject_id=reversal.id).count()) == (-150_000, 1)


@pytest.mark.django_db(transaction=True)
def test_a_loss_booked_as_the_return_comes_back_ends_in_nothing(served_by: Serving) -> None:
    till = Till(open_shop("Race"), BankCaller(new_client()))
    for _ in range(10):
        credit, reversal = taken_twice(till, served_by)
        notice = OrderNotice(return_of(credit).id, "returned")

        def book(reversal: Receipt = reversal) -> None:
            try:
                decide("lose", reversal)
            except NotPossible:
                return

        def come_back(notice: OrderNotice = notice) -> None:
            transfers.hear(notice, settling.OWNER, now=clock.now())

        at_once(book, come_back)
        assert (now_of(reversal), now_of(credit)[1]) == (REVERSED, "taken_back")
        assert (losses(), suspense()) == (0, 0)
