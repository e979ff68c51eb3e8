"""Orders that staff end as never arrived need approval above the limits: the bank may still pay them."""

from collections.abc import Callable

import pytest
from django.db import DatabaseError, transaction
from django.db.models import F
from django.test import Client
from pytest_django import Settings

from approvals.models import Approval
from approvals.services import NotDecidable
from banks import ReportedTransfer, TransferResult
from core import clock
from reconciliation.matching import order_completion
from reconciliation.matching.order_completion import HANDLERS
from refunds.models import Refund
from tests.approvals.builders import approval_of, click, decide_approval, page, staff, try_to_decide, waiting
from tests.concurrency import run_concurrently
from tests.conftest import SandboxBankClient, Shop
from tests.reconciliation.builders import Seller, complete_order, decide
from tests.refunds.builders import PAYEE, send_due_refunds
from tests.staff_acts import run_act
from tests.timeline.builders import only_entry
from tests.transfers.builders import Bank
from tests.withdrawals.builders import send_due_withdrawals, withdrawn
from transfers import services as transfers
from transfers.models import Transfer, TransferState
from transfers.schedule import OVERDUE_AFTER

Serving = Callable[..., Bank]
pytestmark = [pytest.mark.slow, pytest.mark.django_db, pytest.mark.usefixtures("audit_is_clean")]
LISTED, AMOUNT = "/admin/transfers/transfer/", 100_000
SOMSAK = "staff:somsak"


@pytest.fixture
def seller(shop: Shop, bank: SandboxBankClient, served_by: Serving) -> Seller:
    """A shop whose bank never reports the result of an order."""
    served_by(sends=[TransferResult("unknown")], inquiries=[TransferResult("unknown")])
    return Seller(shop, bank)


def withdrawal(seller: Seller) -> str:
    seller.paid()
    made = str(withdrawn(seller.shop, amount=AMOUNT)["withdrawal_id"])
    send_due_withdrawals(2)
    return made


def refund(seller: Seller) -> str:
    made = seller.refund(seller.paid(), amount=AMOUNT, destination=PAYEE)
    send_due_refunds(2)
    return str(made["refund_id"])


def sent_back(seller: Seller) -> str:
    made = decide("send_back", seller.unmatched(), actor="staff:nok")
    order_completion.run_due_returns(now=clock.now)
    return str(made.id)


def overdue(order_id: str) -> str:
    """Make the order overdue."""
    Transfer.objects.update(submitted_at=F("submitted_at") - OVERDUE_AFTER)
    assert state_of(order_id) == TransferState.SUBMITTED
    return order_id


def state_of(order_id: str) -> str:
    return str(Transfer.objects.values_list("state", flat=True).get(pk=order_id))


def never_arrived(order_id: str, actor: str = "staff:malee") -> bool:
    return complete_order(order_id, transfers.NEVER_ARRIVED, actor=actor)


@pytest.mark.parametrize("make", [withdrawal, refund, sent_back])
def test_order_above_the_item_limit_ends_as_never_arrived_when_a_second_person_approves(
    seller: Seller, settings: Settings, make: Callable[[Seller], str]
) -> None:
    order_id, held = overdue(make(seller)), seller.funds()
    settings.APPROVAL_ITEM_LIMIT = AMOUNT - 1
    requester = staff("malee", "view_transfer", "complete_transfer", "decide_approval")
    for _ in range(2):
        said = run_act(requester, Transfer, order_id, "never-arrived")
        assert "Requested to complete the transfer: done." in said
    assert (state_of(order_id), seller.funds(), waiting()) == (TransferState.SUBMITTED, held, [order_id])
    metrics = seller.shop.http.get("/metrics").content.decode()
    assert 'thaiqr_approvals_waiting{kind="never_arrived"} 1.0' in metrics
    own = page(requester, order_id)
    assert f"/admin/transfers/transfer/{order_id.replace('_', '_5F')}/change/" in own
    assert "Order that never arrived" in own
    assert "Another person must decide" in click(requester, "approve", order_id)
    assert state_of(order_id) == TransferState.SUBMITTED
    assert "Approve: done." in click(staff("somsak", "decide_approval"), "approve", order_id)
    ended = Transfer.objects.get(pk=order_id)
    assert (ended.state, ended.failure_code, ended.completed_by) == ("failed", "never_arrived", SOMSAK)
    assert seller.funds()["reserved"] == 0
    approval = approval_of(order_id)
    assert (approval.kind, approval.requested_by, approval.decided_by) == (
        "never_arrived", "staff:malee", SOMSAK,
    )  # fmt: skip


def test_orders_below_the_item_limit_that_never_arrived_count_against_the_daily_limit(
    seller: Seller, settings: Settings
) -> None:
    first, second = [withdrawal(seller) for _ in range(2)]
    Transfer.objects.update(submitted_at=F("submitted_at") - OVERDUE_AFTER)
    settings.APPROVAL_DAILY_LIMIT = 3 * AMOUNT  # both withdrawals count, and one of them once more
    assert never_arrived(first)
    assert not never_arrived(second)
    assert (state_of(first), state_of(second), waiting()) == ("failed", "submitted", [second])
    assert approval_of(second).reason == "daily_limit"


def test_rejected_never_arrived_request_may_be_repeated(seller: Seller, settings: Settings) -> None:
    order_id = overdue(withdrawal(seller))
    settings.APPROVAL_ITEM_LIMIT = AMOUNT - 1
    for how, state in [("reject", "submitted"), ("approve", "failed")]:
        assert not never_arrived(order_id)
        decide_approval(order_id, how, actor=SOMSAK)
        assert state_of(order_id) == state


def test_requester_cannot_approve_an_own_never_arrived_request(seller: Seller, settings: Settings) -> None:
    order_id = overdue(withdrawal(seller))
    settings.APPROVAL_ITEM_LIMIT = AMOUNT - 1
    never_arrived(order_id)
    with pytest.raises(NotDecidable, match="Another person must decide"):
        decide_approval(order_id, "approve", actor="staff:malee")
    assert state_of(order_id) == "submitted"


@pytest.mark.parametrize("make", [withdrawal, refund, sent_back])
@pytest.mark.parametrize("final_status", ["succeeded", "failed"])
def test_answer_of_the_bank_cancels_the_never_arrived_request(
    seller: Seller, settings: Settings, make: Callable[[Seller], str], final_status: str
) -> None:
    order_id = overdue(make(seller))
    settings.APPROVAL_ITEM_LIMIT = AMOUNT - 1
    never_arrived(order_id)
    notification = ReportedTransfer(order_id, final_status)  # type: ignore[arg-type]
    transfers.apply_notification(notification, HANDLERS[order_id.partition("_")[0]], now=clock.now())
    assert (state_of(order_id), approval_of(order_id).status) == (final_status, "canceled")
    with pytest.raises(NotDecidable, match="already"):
        decide_approval(order_id, "approve", actor=SOMSAK)


def test_arrival_reported_by_staff_cancels_the_never_arrived_request(
    seller: Seller, settings: Settings
) -> None:
    order_id = overdue(withdrawal(seller))
    settings.APPROVAL_ITEM_LIMIT = AMOUNT - 1
    never_arrived(order_id)
    assert complete_order(order_id, transfers.ARRIVED)
    assert (state_of(order_id), approval_of(order_id).status) == ("succeeded", "canceled")


def test_order_sent_again_after_the_request_does_not_end_as_never_arrived(
    seller: Seller, settings: Settings
) -> None:
    order_id = overdue(withdrawal(seller))
    settings.APPROVAL_ITEM_LIMIT = AMOUNT - 1
    never_arrived(order_id)
    Transfer.objects.filter(pk=order_id).update(submitted_at=clock.now())
    with pytest.raises(NotDecidable, match="sent again"):
        decide_approval(order_id, "approve", actor=SOMSAK)
    assert (state_of(order_id), waiting()) == ("submitted", [order_id])


def test_timeline_shows_an_approved_never_arrived_refund(seller: Seller, settings: Settings) -> None:
    order_id = overdue(refund(seller))
    settings.APPROVAL_ITEM_LIMIT = AMOUNT - 1
    never_arrived(order_id)
    decide_approval(order_id, "approve", actor=SOMSAK)
    payment_id = Refund.objects.get(pk=order_id).payment_id
    asked = only_entry(seller.shop, payment_id, "approval.requested")
    assert asked["details"] == {"refund_id": order_id, "amount": AMOUNT, "reason": "item_limit"}
    approved = only_entry(seller.shop, payment_id, "approval.approved")
    assert approved["summary"] == "A second person approved 1,000.00 THB: order that never arrived."


@pytest.mark.parametrize("how", ["nobody was asked", "wait", "reject"])
def test_database_refuses_to_end_an_order_as_never_arrived_without_approval(
    seller: Seller, settings: Settings, how: str
) -> None:
    order_id = overdue(withdrawal(seller))
    settings.APPROVAL_ITEM_LIMIT = AMOUNT - 1
    if how != "nobody was asked":
        never_arrived(order_id)
    if how == "reject":
        decide_approval(order_id, "reject", actor=SOMSAK)
    ended = {"state": "failed", "completed_by": "staff:malee", "failure_code": "never_arrived"}
    with pytest.raises(DatabaseError, match="has no approval"), transaction.atomic():
        Transfer.objects.filter(pk=order_id).update(completed_at=clock.now(), lease_until=None, **ended)


@pytest.mark.django_db(transaction=True)
def test_concurrent_approval_and_bank_answer_have_one_outcome(
    seller: Seller, settings: Settings, malee: Client
) -> None:
    order_id = overdue(withdrawal(seller))
    settings.APPROVAL_ITEM_LIMIT = AMOUNT - 1
    run_concurrently(*[lambda: never_arrived(order_id)] * 4)
    assert Approval.objects.filter(kind="never_arrived").count() == 1

    def approve() -> bool:
        return try_to_decide(order_id, "approve", SOMSAK)

    def answer() -> None:
        transfers.apply_notification(ReportedTransfer(order_id, "succeeded"), HANDLERS["wd"], now=clock.now())

    approved = sum(map(bool, run_concurrently(approve, approve, answer)[:2]))
    assert state_of(order_id) == ("failed" if approved else "succeeded")
    assert seller.funds() == {"available": 150_000 if approved else 50_000, "reserved": 0}
