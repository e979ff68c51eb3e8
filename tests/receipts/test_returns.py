"""Money goes back to whoever paid: told to the bank once, and in suspense until the bank says it arrived."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import time_machine
from pytest_django import Settings

from banks import Word
from core import clock
from receipts import acts, orders
from receipts.acts import Destination, NotPossible
from receipts.models import Act, Return
from tests.receipts.cast import Till, carry_back, decide, now_of, postings_of, return_of, suspense
from tests.transfers.cast import Bank
from transfers import services as transfers
from transfers.models import Transfer
from transfers.schedule import OVERDUE

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("books_are_right")]
Serving = Callable[..., Bank]
DONE, REFUSED, UNDER_WAY = Word("succeeded", "b-1"), Word("failed", "b-1", "closed"), Word("processing")


def test_it_goes_to_the_payer_as_the_bank_told_him(till: Till, served_by: Serving) -> None:
    bank, receipt = served_by(), till.unmatched()
    made = decide("send_back", receipt)
    order = Transfer.objects.get().order
    assert (order.order_id, order.purpose, order.amount) == (made.id, "return", 150_000)
    assert (order.bank_code, order.account, order.account_name) == ("014", "1234567890", "Somchai Jaidee")
    assert "1234567890" not in Transfer.objects.get().account_sealed
    assert Transfer.objects.get().merchant_id == till.shop.merchant.id
    assert (now_of(receipt), suspense()) == (("unmatched", "sending_back"), 150_000)
    carry_back(2)
    assert (bank.sent, now_of(receipt)) == ([made.id], ("unmatched", "sent_back"))
    made.refresh_from_db()
    assert (made.status, made.bank_reference, made.by_hand) == ("completed", "b-1", False)
    assert (postings_of(made.id), suspense()) == ([("sent_back", 150_000)], 0)
    assert Act.objects.get().deed == "sent_back"


def test_it_goes_where_staff_were_told(till: Till, served_by: Serving) -> None:
    served_by()
    decide("send_back", till.unmatched(), destination=Destination("004", "4051234567", "สมหญิง ใจดี"))
    order = Transfer.objects.get().order
    assert (order.bank_code, order.account, order.account_name) == ("004", "4051234567", "สมหญิง ใจดี")


def test_without_an_account_that_can_be_true_staff_name_one(till: Till, served_by: Serving) -> None:
    served_by()
    receipt = till.unmatched(payer_bank_code="999")
    with pytest.raises(NotPossible, match="name one"):
        decide("send_back", receipt)
    assert (now_of(receipt), Return.objects.count(), Act.objects.count()) == (("unmatched", ""), 0, 0)
    decide("send_back", receipt, destination=Destination("004", "4051234567", "S"))
    assert now_of(receipt)[1] == "sending_back"


def test_a_bank_that_cannot_send_leaves_it_to_staff(till: Till, settings: Settings) -> None:
    receipt = till.unmatched()
    settings.SANDBOX_BANK_SECRET = ""
    with pytest.raises(NotPossible, match="send it at the bank"):
        decide("send_back", receipt)
    assert (now_of(receipt), Return.objects.count()) == (("unmatched", ""), 0)
    made = decide("send_back_by_hand", receipt, bank_reference="counter 7, 21 Nov")
    assert (made.status, made.by_hand, made.bank_reference) == ("completed", True, "counter 7, 21 Nov")
    assert (now_of(receipt), suspense()) == (("unmatched", "sent_back"), 0)
    assert not Transfer.objects.exists()


def test_one_that_failed_can_be_tried_again_or_decided_otherwise(till: Till, served_by: Serving) -> None:
    served_by(sends=[REFUSED, REFUSED, DONE])
    receipt = till.late()
    for _ in range(2):
        decide("send_back", receipt)
        carry_back()
        failed = return_of(receipt)
        assert (now_of(receipt), failed.status, failed.failure_code) == (("late", ""), "failed", "closed")
        assert suspense() == 150_000
    decide("accept", receipt)
    assert (now_of(receipt)[1], suspense(), till.balance()) == ("accepted", 0, (150_000, 0))
    assert [act.deed for act in Act.objects.order_by("id")] == ["sent_back", "sent_back", "accepted"]


def test_money_that_comes_back_to_us_waits_again(till: Till, served_by: Serving) -> None:
    served_by(sends=[DONE])
    receipt = till.unmatched()
    first = decide("send_back", receipt)
    carry_back()
    for _ in range(2):
        assert till.bank.post(order_notice(first.id, "returned")).status_code == 200
        first.refresh_from_db()
        assert (first.status, now_of(receipt), suspense()) == ("completed", ("unmatched", ""), 150_000)
    assert first.returned_at is not None
    second = decide("send_back", receipt)
    carry_back()
    assert (now_of(receipt)[1], suspense()) == ("sent_back", 0)
    assert [postings_of(made.id) for made in (first, second)] == [
        [("sent_back", 150_000), ("held", 150_000)],
        [("sent_back", 150_000)],
    ]


def order_notice(order_id: str, status: str) -> dict[str, Any]:
    return {
        "type": "order", "reference": order_id, "bank_reference": "sbo_1", "amount": "1500.00",
        "currency": "THB", "status": status, "reason": "account_closed" if status != "succeeded" else "",
    }  # fmt: skip


def test_the_bank_tells_at_its_door_that_it_arrived(till: Till, served_by: Serving) -> None:
    served_by(sends=[UNDER_WAY], inquiries=[UNDER_WAY])
    receipt = till.unmatched()
    made = decide("send_back", receipt)
    carry_back()
    for _ in range(2):
        assert till.bank.post(order_notice(made.id, "succeeded")).json() == {"status": "received"}
    assert (now_of(receipt)[1], suspense(), return_of(receipt).bank_reference) == ("sent_back", 0, "sbo_1")


def test_money_that_came_back_before_we_heard_that_it_arrived_waits_again(
    till: Till, served_by: Serving
) -> None:
    served_by(sends=[UNDER_WAY], inquiries=[UNDER_WAY])
    receipt = till.unmatched()
    made = decide("send_back", receipt)
    carry_back()
    till.bank.post(order_notice(made.id, "returned"))
    assert (now_of(receipt), suspense()) == (("unmatched", ""), 150_000)
    assert [fact for fact, _ in postings_of(made.id)] == ["sent_back", "held"]


@pytest.mark.parametrize(
    ("word", "resolution", "left"),
    [(transfers.ARRIVED, "sent_back", 0), (transfers.NEVER_ARRIVED, "", 150_000)],
)
def test_staff_end_one_of_which_the_bank_is_silent(
    till: Till, served_by: Serving, word: Word, resolution: str, left: int
) -> None:
    served_by(sends=[Word("unknown")], inquiries=[Word("unknown")])
    receipt = till.unmatched()
    made = decide("send_back", receipt)
    carry_back(2)
    with time_machine.travel(clock.now() + OVERDUE + timedelta(minutes=1)):
        orders.settle_by_hand(made.id, word, by="malee", now=clock.now())
        with pytest.raises(transfers.NotOverdue):
            orders.settle_by_hand(made.id, word, by="somsak", now=clock.now())
    assert (now_of(receipt)[1], suspense()) == (resolution, left)


def test_money_on_its_way_cannot_be_decided_otherwise(till: Till, served_by: Serving) -> None:
    bank = served_by(sends=[UNDER_WAY], inquiries=[DONE])
    receipt = till.late()
    decide("send_back", receipt)
    for _ in range(3):
        for deed, more in [("accept", {}), ("send_back", {}), ("send_back_by_hand", {"bank_reference": "b"})]:
            with pytest.raises(acts.AlreadyDone):
                decide(deed, receipt, **more)
        carry_back()
    assert (len(bank.sent), suspense(), till.shop.payment(str(receipt.payment_id))["status"]) == (
        1,
        0,
        "pending",
    )
