"""A bank that takes payments back by our order tells of it as of a reversal: the order explains it."""

from collections.abc import Callable

import pytest

from banks import Word
from receipts.models import Receipt
from tests.receipts.cast import Till, carry_back, decide, now_of, suspense
from tests.refunds.cast import carry_out
from tests.transfers.cast import Bank
from transfers.models import Transfer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("books_are_right")]
Serving = Callable[..., Bank]
DONE, REFUSED, UNDER_WAY = Word("succeeded", "b-1"), Word("failed", "b-1"), Word("processing", "b-1")
ORDERED = ("ordered", "")


@pytest.fixture(autouse=True)
def it_voids(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bank sends nothing to accounts; it takes back payments of its own."""
    monkeypatch.setattr("banks.voids", lambda route: True)


def refund_under_way(till: Till, served_by: Serving, ends: Word) -> Receipt:
    """A payment that the bank was told to take back, and the bank's word that it did."""
    served_by(sends=[UNDER_WAY], inquiries=[ends])
    credit = till.sold()
    till.refund(str(credit.payment_id))
    assert Transfer.objects.get().charge_id == credit.bank_transaction_id
    carry_out()
    return till.takes_back(credit)


def test_the_banks_word_is_the_end_of_the_order(till: Till, served_by: Serving) -> None:
    reversal = refund_under_way(till, served_by, DONE)
    assert (now_of(reversal), till.held()) == (ORDERED, {"available": 0, "reserved": 0})
    carry_out()
    assert (now_of(reversal), till.held()) == (ORDERED, {"available": 0, "reserved": 0})
    assert till.shop.payment(str(reversal.payment_id))["status"] == "refunded"
    assert till.history() == [("succeeded", -150_000)]


def test_an_order_that_the_bank_has_carried_out_does_not_fail(till: Till, served_by: Serving) -> None:
    reversal = refund_under_way(till, served_by, REFUSED)
    carry_out()
    assert (now_of(reversal), till.held()) == (ORDERED, {"available": 0, "reserved": 0})
    assert till.history() == [("succeeded", -150_000)]


def test_what_the_bank_took_back_before_it_was_told_cannot_be_canceled(
    till: Till, served_by: Serving
) -> None:
    bank = served_by()
    credit = till.sold()
    refund = till.refund(str(credit.payment_id))
    reversal = till.takes_back(credit)
    assert now_of(reversal) == ORDERED
    assert till.act(refund, "cancel").status_code == 400
    carry_out()
    assert (bank.sent, till.held()) == ([], {"available": 0, "reserved": 0})


@pytest.mark.parametrize("ends", [DONE, REFUSED])
def test_a_return_ends_by_the_banks_word(till: Till, served_by: Serving, ends: Word) -> None:
    served_by(sends=[UNDER_WAY], inquiries=[ends])
    credit = till.unmatched()
    decide("send_back", credit)
    carry_back()
    reversal = till.takes_back(credit)
    carry_back()
    assert (now_of(reversal), now_of(credit)[1], suspense()) == (ORDERED, "sent_back", 0)
