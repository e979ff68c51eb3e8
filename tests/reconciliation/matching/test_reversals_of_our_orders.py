"""A bank that voids payments by our order reports a reversal: it completes the order."""

from collections.abc import Callable

import pytest

from banks import TransferResult
from reconciliation.models import BankTransaction
from tests.reconciliation.builders import Seller, decide, run_returns, state_of, suspense
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
def bank_only_voids(monkeypatch: pytest.MonkeyPatch) -> None:
    """Use a bank that can only void payments."""
    monkeypatch.setattr("banks.is_void_only", lambda route: True)


def refund_under_way(seller: Seller, served_by: Serving, ends: TransferResult) -> BankTransaction:
    """Refund a payment by a void; return the bank's reversal."""
    served_by(sends=[UNDER_WAY], inquiries=[ends])
    credit = seller.sale()
    seller.refund(str(credit.payment_id))
    assert Transfer.objects.get().charge_id == credit.bank_reference
    send_due_refunds()
    return seller.reverse(credit)


def test_reversal_notification_completes_a_pending_refund_order(seller: Seller, served_by: Serving) -> None:
    reversal = refund_under_way(seller, served_by, DONE)
    assert (state_of(reversal), seller.funds()) == (ORDERED, {"available": 0, "reserved": 0})
    send_due_refunds()
    assert (state_of(reversal), seller.funds()) == (ORDERED, {"available": 0, "reserved": 0})
    assert seller.shop.payment(str(reversal.payment_id))["status"] == "refunded"
    assert seller.history() == [("succeeded", -150_000)]


def test_order_that_the_bank_completed_does_not_fail(seller: Seller, served_by: Serving) -> None:
    reversal = refund_under_way(seller, served_by, REFUSED)
    send_due_refunds()
    assert (state_of(reversal), seller.funds()) == (ORDERED, {"available": 0, "reserved": 0})
    assert seller.history() == [("succeeded", -150_000)]


def test_order_reversed_before_submission_cannot_be_canceled(seller: Seller, served_by: Serving) -> None:
    bank = served_by()
    credit = seller.sale()
    refund = seller.refund(str(credit.payment_id))
    reversal = seller.reverse(credit)
    assert state_of(reversal) == ORDERED
    assert seller.act(refund, "cancel").status_code == 400
    send_due_refunds()
    assert (bank.sent, seller.funds()) == ([], {"available": 0, "reserved": 0})


@pytest.mark.parametrize("ends", [DONE, REFUSED])
def test_reversal_notification_completes_a_return(
    seller: Seller, served_by: Serving, ends: TransferResult
) -> None:
    served_by(sends=[UNDER_WAY], inquiries=[ends])
    credit = seller.unmatched()
    decide("send_back", credit)
    run_returns()
    reversal = seller.reverse(credit)
    run_returns()
    assert (state_of(reversal), state_of(credit)[1], suspense()) == (ORDERED, "sent_back", 0)
