"""A bank that takes payments back by our order tells of it as of a reversal: the order explains it."""

from collections.abc import Callable

import pytest

from banks import TransferResult
from reconciliation.models import BankTransaction
from tests.reconciliation.cast import Till, carry_back, decide, now_of, suspense
from tests.refunds.builders import send_due_refunds
from tests.transfers.builders import Bank
from transfers.models import Transfer

pytestmark = [pytest.mark.slow, pytest.mark.django_db, pytest.mark.usefixtures("audit_is_clean")]
Serving = Callable[..., Bank]
DONE, REFUSED, UNDER_WAY = (
    TransferResult("succeeded", "b-1"),
    TransferResult("failed", "b-1"),
    TransferResult("processing", "b-1"),
)
ORDERED = ("ordered", "")


@pytest.fixture(autouse=True)
def it_voids(monkeypatch: pytest.MonkeyPatch) -> None:
    """The bank sends nothing to accounts; it takes back payments of its own."""
    monkeypatch.setattr("banks.is_void_only", lambda route: True)


def refund_under_way(till: Till, served_by: Serving, ends: TransferResult) -> BankTransaction:
    """A payment that the bank was told to take back, and the bank's word that it did."""
    served_by(sends=[UNDER_WAY], inquiries=[ends])
    credit = till.sold()
    till.refund(str(credit.payment_id))
    assert Transfer.objects.get().charge_id == credit.bank_transaction_id
    send_due_refunds()
    return till.takes_back(credit)


def test_reversal_notification_completes_our_refund_order(till: Till, served_by: Serving) -> None:
    reversal = refund_under_way(till, served_by, DONE)
    assert (now_of(reversal), till.held()) == (ORDERED, {"available": 0, "reserved": 0})
    send_due_refunds()
    assert (now_of(reversal), till.held()) == (ORDERED, {"available": 0, "reserved": 0})
    assert till.shop.payment(str(reversal.payment_id))["status"] == "refunded"
    assert till.history() == [("succeeded", -150_000)]


def test_order_that_the_bank_carried_out_does_not_fail(till: Till, served_by: Serving) -> None:
    reversal = refund_under_way(till, served_by, REFUSED)
    send_due_refunds()
    assert (now_of(reversal), till.held()) == (ORDERED, {"available": 0, "reserved": 0})
    assert till.history() == [("succeeded", -150_000)]


def test_order_reversed_before_submission_cannot_be_canceled(till: Till, served_by: Serving) -> None:
    bank = served_by()
    credit = till.sold()
    refund = till.refund(str(credit.payment_id))
    reversal = till.takes_back(credit)
    assert now_of(reversal) == ORDERED
    assert till.act(refund, "cancel").status_code == 400
    send_due_refunds()
    assert (bank.sent, till.held()) == ([], {"available": 0, "reserved": 0})


@pytest.mark.parametrize("ends", [DONE, REFUSED])
def test_reversal_notification_completes_a_return(
    till: Till, served_by: Serving, ends: TransferResult
) -> None:
    served_by(sends=[UNDER_WAY], inquiries=[ends])
    credit = till.unmatched()
    decide("send_back", credit)
    carry_back()
    reversal = till.takes_back(credit)
    carry_back()
    assert (now_of(reversal), now_of(credit)[1], suspense()) == (ORDERED, "sent_back", 0)
