"""A bank that takes payments back by our order tells of it as of a reversal: the order explains it."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from banks import Word
from core import clock
from receipts import services
from receipts.models import Receipt
from tests.receipts.cast import Till, carry_back, decide, now_of, suspense
from tests.refunds.cast import carry_out
from tests.transfers.cast import Bank
from transfers.models import Transfer

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("books_are_right")]
Serving = Callable[..., Bank]
DONE, REFUSED, UNDER_WAY = Word("succeeded", "b-1"), Word("failed", "b-1"), Word("processing", "b-1")
ORDERED, REVERSED = ("ordered", ""), ("reversed", "")


@pytest.fixture(autouse=True)
def it_voids(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bank sends nothing to accounts; it takes back payments of its own."""
    monkeypatch.setattr("banks.voids", lambda route: True)


def sweep(hours: float = 1) -> int:
    return services.apply_left(now=clock.now() + timedelta(hours=hours))


def refund_under_way(till: Till, served_by: Serving, ends: Word) -> Receipt:
    """A payment that the bank was told to take back, and the bank's word that it did."""
    served_by(sends=[UNDER_WAY], inquiries=[ends])
    credit = till.sold()
    till.refund(str(credit.payment_id))
    assert Transfer.objects.get().charge_id == credit.bank_transaction_id
    carry_out()
    return till.takes_back(credit)


def test_what_was_ordered_is_taken_once(till: Till, served_by: Serving) -> None:
    reversal = refund_under_way(till, served_by, DONE)
    assert (now_of(reversal), till.held()) == (ORDERED, {"available": 0, "reserved": 150_000})
    carry_out()
    assert (sweep(), now_of(reversal), till.held()) == (0, ORDERED, {"available": 0, "reserved": 0})


def test_a_refund_that_failed_leaves_the_banks_word_to_be_true(till: Till, served_by: Serving) -> None:
    reversal = refund_under_way(till, served_by, REFUSED)
    carry_out()
    assert (now_of(reversal), till.held()) == (ORDERED, {"available": 150_000, "reserved": 0})
    assert (sweep(), sweep()) == (1, 0)
    assert (now_of(reversal), till.held()) == (REVERSED, {"available": 0, "reserved": 0})
    assert till.shop.payment(str(reversal.payment_id))["status"] == "refunded"
    assert till.history() == [("succeeded", -150_000), ("failed", -150_000)]


def test_a_refund_that_was_canceled_explains_nothing(till: Till, served_by: Serving) -> None:
    served_by()
    credit = till.sold()
    refund = till.refund(str(credit.payment_id))
    reversal = till.takes_back(credit)
    assert now_of(reversal) == ORDERED
    assert till.act(refund, "cancel").status_code == 200
    assert (sweep(), now_of(reversal), till.held()) == (1, REVERSED, {"available": 0, "reserved": 0})


@pytest.mark.parametrize(
    ("ends", "reversal_is", "resolution"), [(DONE, ORDERED, "sent_back"), (REFUSED, REVERSED, "taken_back")]
)
def test_a_return_that_ends_explains_it_or_leaves_it_to_the_bank(
    till: Till, served_by: Serving, ends: Word, reversal_is: tuple[str, str], resolution: str
) -> None:
    served_by(sends=[UNDER_WAY], inquiries=[ends])
    credit = till.unmatched()
    decide("send_back", credit)
    carry_back()
    reversal = till.takes_back(credit)
    assert now_of(reversal) == ORDERED
    carry_back()
    assert (now_of(reversal), now_of(credit)[1], suspense(), sweep()) == (reversal_is, resolution, 0, 0)
