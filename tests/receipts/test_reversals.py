"""A bank takes back what it had reported: whatever became of the money, the books follow the bank."""

from collections.abc import Callable
from typing import Any

import pytest

from banks import OrderNotice, Word
from core import clock
from payments.models import Payment
from receipts import settling
from receipts.acts import AlreadyDone, NotPossible
from receipts.models import Receipt
from refunds.models import Refund
from tests.receipts.cast import (
    Till,
    carry_back,
    decide,
    kinds_told,
    now_of,
    postings_of,
    return_of,
    reversal_of,
    suspense,
    told_of,
)
from tests.refunds.cast import PAYEE, carry_out
from tests.transfers.cast import Bank
from tests.withdrawals.cast import PATH, withdrawal_request, withdrawn, work
from transactions import ledger
from transfers import services as transfers

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("books_are_right")]
Serving = Callable[..., Bank]
DONE, REFUSED, UNDER_WAY = Word("succeeded", "b-1"), Word("failed", "b-1"), Word("processing", "b-1")
REVERSED, WAITS, TAKEN = ("reversed", ""), ("unmatched", ""), ("unmatched", "taken_back")


def test_a_payment_that_its_bank_takes_back_goes_the_way_of_a_refund(till: Till) -> None:
    credit = till.sold()
    reversal = till.takes_back(credit)
    assert (now_of(reversal), now_of(credit)) == (REVERSED, ("applied", ""))
    assert (reversal.payment_id, reversal.merchant_id) == (credit.payment_id, till.shop.merchant.id)
    payment = till.shop.payment(str(credit.payment_id))
    assert (payment["status"], payment["amount_refunded"]) == ("refunded", 150_000)
    assert (till.history(), till.history("payment")) == (
        [("succeeded", -150_000)],
        [("refunded", 150_000)],
    )
    assert till.held() == {"available": 0, "reserved": 0}
    assert postings_of(reversal.id) == [("reversal", 150_000)]


def test_the_merchant_sees_what_the_bank_took_back_as_a_refund_and_is_told_once(till: Till) -> None:
    credit = till.sold()
    reversal = till.takes_back(credit)
    (shown,) = till.shop.get(f"/v1/refunds?payment_id={credit.payment_id}").json()["refunds"]
    assert (shown["status"], shown["amount"], shown["reason"], shown["note"]) == (
        "completed",
        150_000,
        "other",
        "Taken back by the bank.",
    )
    assert shown["completed_at"] == shown["created_at"] is not None
    assert told_of(shown["refund_id"]) == [("refund.completed", shown)]
    assert Refund.objects.get().reversal_id == reversal.id
    assert sorted(kinds_told(str(credit.payment_id))) == ["payment.pending", "payment.succeeded"]


def test_a_reversal_told_again_changes_nothing(till: Till) -> None:
    credit = till.sold()
    notice = reversal_of(credit)
    for _ in range(3):
        assert till.bank.post(notice).json() == {"status": "received"}
    assert (till.held(), Refund.objects.count()) == ({"available": 0, "reserved": 0}, 1)


def test_what_is_beyond_the_balance_is_owed_and_later_credits_fill_it(till: Till, served_by: Serving) -> None:
    served_by(sends=[DONE])
    credit = till.sold()
    withdrawn(till.shop, amount=100_000)
    work()
    till.takes_back(credit)
    assert till.held() == {"available": 0, "reserved": 0, "owed": 100_000}
    till.sold(30_000)
    assert till.held() == {"available": 0, "reserved": 0, "owed": 70_000}
    ledger.fold_due(now=clock.now())
    till.sold(90_000)
    assert till.held() == {"available": 20_000, "reserved": 0}
    ledger.fold_due(now=clock.now())
    assert till.held() == {"available": 20_000, "reserved": 0}


def test_what_is_owed_cannot_be_withdrawn(till: Till, served_by: Serving) -> None:
    served_by(sends=[DONE])
    credit = till.sold()
    withdrawn(till.shop, amount=100_000)
    work()
    till.takes_back(credit)
    till.sold(110_000)
    answer = till.shop.post(PATH, withdrawal_request(amount=10_001))
    assert (answer.status_code, answer.json()["error"]["code"]) == (402, "insufficient_funds")


def test_part_of_a_payment_is_taken_back_and_the_rest_can_be_refunded(till: Till, served_by: Serving) -> None:
    served_by(sends=[DONE])
    credit = till.sold()
    assert now_of(till.takes_back(credit, 50_000)) == REVERSED
    payment = till.shop.payment(str(credit.payment_id))
    assert (payment["status"], payment["amount_refunded"], till.balance()) == (
        "succeeded",
        50_000,
        (100_000, 0),
    )
    refused = till.ask(str(credit.payment_id), amount=100_001)
    assert refused.json()["error"]["code"] == "refund_amount_exceeded"
    till.refund(str(credit.payment_id))
    carry_out()
    assert till.shop.payment(str(credit.payment_id))["status"] == "refunded"
    assert till.held() == {"available": 0, "reserved": 0}


def test_what_a_refund_sent_back_before_is_not_counted_twice(till: Till, served_by: Serving) -> None:
    served_by(sends=[DONE])
    credit = till.sold()
    till.refund(str(credit.payment_id), amount=60_000)
    carry_out()
    till.takes_back(credit)
    payment = till.shop.payment(str(credit.payment_id))
    assert (payment["status"], payment["amount_refunded"]) == ("refunded", 150_000)
    assert till.history() == [("succeeded", -90_000), ("succeeded", -60_000)]
    assert till.held() == {"available": 0, "reserved": 0, "owed": 60_000}


def test_money_of_a_payment_that_was_refunded_before_is_owed(till: Till, served_by: Serving) -> None:
    served_by(sends=[DONE])
    credit = till.sold()
    till.refund(str(credit.payment_id))
    carry_out()
    assert now_of(till.takes_back(credit)) == REVERSED
    assert (Refund.objects.count(), till.held()) == (1, {"available": 0, "reserved": 0, "owed": 150_000})


@pytest.mark.parametrize(
    ("ends", "status", "refunded", "held"),
    [
        (DONE, "refunded", 150_000, {"available": 0, "reserved": 0, "owed": 40_000}),
        (REFUSED, "refunded", 150_000, {"available": 0, "reserved": 0}),
    ],
)
def test_a_refund_under_way_ends_by_itself(
    till: Till, served_by: Serving, ends: Word, status: str, refunded: int, held: Any
) -> None:
    served_by(sends=[UNDER_WAY], inquiries=[ends])
    credit = till.sold()
    till.refund(str(credit.payment_id), amount=40_000)
    carry_out()
    till.takes_back(credit)
    assert till.held() == {"available": 0, "reserved": 40_000, "owed": 40_000}
    carry_out()
    payment = till.shop.payment(str(credit.payment_id))
    assert (payment["status"], payment["amount_refunded"], till.held()) == (status, refunded, held)


def test_what_the_bank_took_while_a_refund_was_under_way_cannot_be_refunded_again(
    till: Till, served_by: Serving
) -> None:
    served_by(sends=[UNDER_WAY], inquiries=[REFUSED])
    credit = till.sold()
    asked = till.refund(str(credit.payment_id))["refund_id"]
    carry_out()
    reversal = till.takes_back(credit)
    assert Refund.objects.get().id == asked
    till.sold()
    carry_out()
    (by_bank,) = Refund.objects.exclude(pk=asked)
    assert (by_bank.status, by_bank.amount, by_bank.reversal_id) == ("completed", 150_000, reversal.id)
    assert kinds_told(by_bank.id) == ["refund.completed"]
    assert till.shop.payment(str(credit.payment_id))["status"] == "refunded"
    assert till.held() == {"available": 150_000, "reserved": 0}
    again = till.shop.post("/v1/refunds", {"payment_id": credit.payment_id, "amount": 1})
    assert again.json()["error"]["code"] == "payment_not_refundable"


def test_refunds_that_no_bank_was_told_of_do_not_go_as_well(till: Till) -> None:
    credit = till.sold()
    asked = [till.refund(str(credit.payment_id), amount=satang)["refund_id"] for satang in (100_000, 10_000)]
    reversal = till.takes_back(credit)
    assert set(Refund.objects.filter(pk__in=asked).values_list("status", "canceled_by")) == {
        ("canceled", "bank:sandbox")
    }
    shown = Refund.objects.filter(reversal_id=reversal.id).values_list("amount", flat=True)
    assert sorted(shown) == [10_000, 40_000, 100_000]
    assert till.shop.payment(str(credit.payment_id))["status"] == "refunded"
    assert till.held() == {"available": 0, "reserved": 0}


def test_a_refund_without_a_destination_does_not_get_one_after_the_bank_took_the_money_back(
    till: Till,
) -> None:
    code = till.shop.qr_code()
    assert till.bank.tell(code, payer_bank_code="999").status_code == 200  # of no bank
    credit, waiting = till.receipt(code["payment_id"]), till.refund(code["payment_id"])
    assert waiting["pending_reason"] == "awaiting_destination"
    till.takes_back(credit)
    answer = till.act(waiting, "destination", PAYEE)
    assert answer.json()["error"]["code"] == "refund_not_addressable"
    assert till.held() == {"available": 0, "reserved": 0}


def test_a_part_that_the_bank_takes_back_leaves_refunds_that_there_is_room_for(till: Till) -> None:
    credit = till.sold()
    kept, beyond = (till.refund(str(credit.payment_id), amount=60_000)["refund_id"] for _ in range(2))
    till.takes_back(credit, 50_000)
    assert dict(Refund.objects.filter(pk__in=[kept, beyond]).values_list("pk", "status")) == {
        kept: "pending",
        beyond: "canceled",
    }
    payment = till.shop.payment(str(credit.payment_id))
    assert (payment["status"], payment["amount_refunded"]) == ("succeeded", 50_000)


@pytest.mark.parametrize("change", [{"satang": 150_001}, {"transaction_id": "ANOTHERTRANSACTION00"}])
def test_a_reversal_of_what_we_never_had_waits_and_moves_nothing(till: Till, change: Any) -> None:
    credit = till.sold()
    reversal = till.takes_back(credit, **change)
    assert (now_of(reversal), reversal.payment_id) == (WAITS, None)
    assert till.held() == {"available": 150_000, "reserved": 0}
    assert Payment.objects.get().status == "succeeded"


def test_a_credit_is_taken_back_once_under_whatever_id(till: Till) -> None:
    credit = till.sold()
    till.takes_back(credit)
    assert now_of(till.takes_back(credit, transaction_id="ANOTHERTRANSACTION00")) == WAITS
    assert till.held() == {"available": 0, "reserved": 0}


def test_a_reversal_that_comes_before_its_credit_waits_for_it(till: Till) -> None:
    code = till.shop.qr_code()
    notice = till.bank.notice(code)
    assert till.bank.post(notice | {"type": "reversal"}).status_code == 200
    reversal = Receipt.objects.get()
    assert now_of(reversal) == WAITS
    till.bank.post(notice)
    assert (now_of(reversal), till.shop.payment(code["payment_id"])["status"]) == (REVERSED, "refunded")
    assert till.held() == {"available": 0, "reserved": 0}
    assert sorted(kinds_told(code["payment_id"])) == ["payment.pending", "payment.succeeded"]


def test_what_waits_is_taken_out_of_suspense(till: Till) -> None:
    for credit in (till.unmatched(), till.mismatch(), till.late(), till.duplicate()):
        before = suspense()
        reversal = till.takes_back(credit)
        assert (now_of(reversal), credit.id, now_of(credit)[1]) == (REVERSED, credit.id, "taken_back")
        assert suspense() == before - credit.amount
        with pytest.raises(AlreadyDone, match="The bank has taken this money back"):
            decide("send_back", credit)
    assert (suspense(), Refund.objects.count()) == (0, 0)


def test_a_part_of_what_waits_is_taken_when_it_is_known_whose_it_is(till: Till) -> None:
    credit = till.mismatch(149_900)
    reversal = till.takes_back(credit, 100_000)
    assert (now_of(reversal), suspense()) == (WAITS, 149_900)
    decide("accept", credit)
    assert (now_of(reversal), suspense()) == (REVERSED, 0)
    payment = till.shop.payment(str(credit.payment_id))
    assert (payment["status"], payment["amount_received"], payment["amount_refunded"]) == (
        "succeeded",
        149_900,
        100_000,
    )
    assert till.held() == {"available": 49_900, "reserved": 0}


def test_attached_money_is_taken_from_whoever_has_it_now(till: Till) -> None:
    credit, payment_id = till.unmatched(), till.shop.qr_code()["payment_id"]
    decide("attach", credit, payment_id=payment_id)
    reversal = till.takes_back(credit)
    assert (now_of(reversal), reversal.payment_id) == (REVERSED, payment_id)
    assert till.shop.payment(payment_id)["status"] == "refunded"
    assert till.held() == {"available": 0, "reserved": 0}


# --- money on its way back to the payer --------------------------------------------------------------------


def test_an_order_that_no_bank_was_told_of_is_stopped(till: Till, served_by: Serving) -> None:
    bank, credit = served_by(), till.unmatched()
    decide("send_back", credit)
    assert now_of(till.takes_back(credit)) == REVERSED
    carry_back(2)
    assert (now_of(credit), return_of(credit).status, bank.sent, suspense()) == (TAKEN, "canceled", [], 0)


def test_a_reversal_waits_for_money_that_its_bank_is_sending_back(till: Till, served_by: Serving) -> None:
    served_by(sends=[UNDER_WAY], inquiries=[UNDER_WAY])
    credit = till.unmatched()
    decide("send_back", credit)
    carry_back()
    reversal = till.takes_back(credit)
    assert (now_of(reversal), now_of(credit)) == (WAITS, ("unmatched", "sending_back"))
    assert suspense() == 150_000


def waiting_reversal(till: Till, served_by: Serving, ends: Word) -> tuple[Receipt, Receipt]:
    """A credit that its bank was sending back as it took it back; how the sending ended."""
    served_by(sends=[UNDER_WAY], inquiries=[ends])
    credit = till.unmatched()
    decide("send_back", credit)
    carry_back()
    reversal = till.takes_back(credit)
    carry_back()
    return credit, reversal


def test_a_return_that_failed_leaves_the_money_to_the_reversal(till: Till, served_by: Serving) -> None:
    credit, reversal = waiting_reversal(till, served_by, REFUSED)
    assert (now_of(reversal), now_of(credit), return_of(credit).status) == (REVERSED, TAKEN, "failed")
    assert (suspense(), postings_of(reversal.id)) == (0, [("reversal", 150_000)])


def test_a_return_that_arrived_leaves_the_reversal_to_staff(till: Till, served_by: Serving) -> None:
    credit, reversal = waiting_reversal(till, served_by, DONE)
    assert (now_of(reversal), now_of(credit)) == (WAITS, ("unmatched", "sent_back"))
    assert (suspense(), postings_of(reversal.id)) == (0, [])
    till.bank.post(reversal_of(credit, paid_at=reversal_of(credit)["paid_at"]))
    assert now_of(reversal) == WAITS


def test_money_that_comes_back_to_us_is_left_to_the_reversal(till: Till, served_by: Serving) -> None:
    credit, reversal = waiting_reversal(till, served_by, DONE)
    notice = OrderNotice(return_of(credit).id, "returned")
    transfers.hear(notice, settling.OWNER, now=clock.now())
    assert (now_of(reversal), now_of(credit), suspense()) == (REVERSED, TAKEN, 0)


def test_a_dismissed_reversal_takes_nothing_of_what_is_sent_back(till: Till, served_by: Serving) -> None:
    served_by(sends=[UNDER_WAY], inquiries=[REFUSED])
    credit = till.unmatched()
    decide("send_back", credit)
    carry_back()
    reversal = till.takes_back(credit)
    decide("dismiss", reversal)
    carry_back()
    assert (now_of(reversal), now_of(credit), suspense()) == (("unmatched", "dismissed"), WAITS, 150_000)


def test_a_reversal_that_was_dismissed_before_its_credit_came_is_carried_out(till: Till) -> None:
    code = till.shop.qr_code()
    notice = till.bank.notice(code)
    till.bank.post(notice | {"type": "reversal"})
    reversal = Receipt.objects.get()
    decide("dismiss", reversal)
    till.bank.post(notice)
    assert now_of(reversal) == ("reversed", "")
    assert till.held() == {"available": 0, "reserved": 0}
    assert till.shop.payment(code["payment_id"])["status"] == "refunded"


def test_what_the_bank_takes_back_in_part_is_not_sent_back_whole(till: Till, served_by: Serving) -> None:
    served_by()
    credit = till.unmatched()
    till.takes_back(credit, credit.amount - 1)
    for deed, more in (("send_back", {}), ("send_back_by_hand", {"bank_reference": "B-1"})):
        with pytest.raises(NotPossible, match="takes money of this back itself"):
            decide(deed, credit, **more)
    assert now_of(credit) == WAITS


def test_money_cannot_be_dismissed_nor_a_reversal_sent_back(till: Till) -> None:
    credit = till.sold()
    reversal = till.takes_back(credit, transaction_id="ANOTHERTRANSACTION00")
    with pytest.raises(NotPossible, match="Money cannot be dismissed"):
        decide("dismiss", till.unmatched())
    for deed, more in [("send_back", {}), ("send_back_by_hand", {"bank_reference": "x"})]:
        with pytest.raises(NotPossible, match="no money"):
            decide(deed, reversal, **more)
    with pytest.raises(NotPossible, match="cannot be accepted"):
        decide("accept", reversal)
    with pytest.raises(NotPossible, match="Only money can be attached"):
        decide("attach", reversal, payment_id=till.shop.qr_code()["payment_id"])
