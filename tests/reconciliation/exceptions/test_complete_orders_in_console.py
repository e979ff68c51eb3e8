"""Staff complete overdue orders of a silent bank with the result that they got from the bank."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db import DatabaseError, transaction
from django.db.models import F
from django.test import Client

from banks import ReportedTransfer, TransferResult
from core import clock
from reconciliation.matching.order_completion import HANDLERS
from tests.concurrency import run_concurrently
from tests.conftest import SandboxBankClient, Shop
from tests.reconciliation.builders import complete_order
from tests.refunds.builders import PAYEE, RefundShop, send_due_refunds
from tests.staff_acts import acts_of_staff, run_act, send_act
from tests.transfers.builders import Bank
from tests.withdrawals import builders as withdrawals
from transfers import services as transfers
from transfers.models import Transfer, TransferState
from transfers.schedule import OVERDUE_AFTER
from webhooks.models import Event

Serving = Callable[..., Bank]
pytestmark = [pytest.mark.slow, pytest.mark.django_db, pytest.mark.usefixtures("audit_is_clean")]
LISTED = "/admin/transfers/transfer/"


def staff(name: str, *permissions: str) -> Client:
    user = User.objects.create_user(name, is_staff=True)
    user.user_permissions.set(Permission.objects.filter(codename__in=["view_transfer", *permissions]))
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def malee(db: None) -> Client:
    return staff("malee", "complete_transfer")


@pytest.fixture
def refund_shop(shop: Shop, bank: SandboxBankClient) -> RefundShop:
    return RefundShop(shop, bank)


@pytest.fixture
def silent(served_by: Serving) -> Bank:
    """A bank that accepts every order and never reports the result."""
    return served_by(sends=[TransferResult("unknown")], inquiries=[TransferResult("unknown")])


def run_action(client: Client, action: str, transfer: Transfer) -> str:
    """Complete a transfer on its page; return the next page."""
    return run_act(client, Transfer, transfer.id, action.replace("_", "-"))


def overdue_transfer(wait: timedelta = OVERDUE_AFTER) -> Transfer:
    """Return the only transfer, now overdue."""
    Transfer.objects.update(submitted_at=F("submitted_at") - wait)
    transfer: Transfer = Transfer.objects.get()
    assert transfer.state == TransferState.SUBMITTED
    return transfer


def withdrawn(refund_shop: RefundShop) -> dict[str, Any]:
    """A submitted withdrawal of 1,000.00 of 1,500.00 THB."""
    refund_shop.paid()
    made = withdrawals.withdrawn(refund_shop.shop)
    withdrawals.send_due_withdrawals(2)
    return made


def refunded(refund_shop: RefundShop) -> dict[str, Any]:
    """A submitted refund of 1,000.00 of 1,500.00 THB."""
    made = refund_shop.refund(refund_shop.paid(), amount=100_000, destination=PAYEE)
    send_due_refunds(2)
    return made


@pytest.mark.parametrize(
    ("action", "status", "code", "balance"),
    [("never_arrived", "failed", "never_arrived", (150_000, 0)), ("arrived", "succeeded", None, (50_000, 0))],
)
def test_staff_complete_an_overdue_withdrawal_as_the_bank_says(
    refund_shop: RefundShop,
    silent: Bank,
    malee: Client,
    action: str,
    status: str,
    code: str | None,
    balance: Any,
) -> None:
    made = withdrawn(refund_shop)
    assert refund_shop.balance() == (50_000, 100_000)
    assert "done." in run_action(malee, action, overdue_transfer())
    ended = withdrawals.fetch_withdrawal(refund_shop.shop, made)
    assert (ended["status"], ended["failure_code"], refund_shop.balance()) == (status, code, balance)
    assert withdrawals.events_of(made)[-1] == f"withdrawal.{status}"
    assert (Transfer.objects.get().completed_by, len(silent.sent)) == ("staff:malee", 1)
    entry = acts_of_staff().get()
    assert (entry.actor, entry.object_id) == ("staff:malee", made["withdrawal_id"])


@pytest.mark.parametrize(
    ("action", "status", "code", "balance", "history"),
    [
        ("never_arrived", "failed", "never_arrived", (150_000, 0), "failed"),
        ("arrived", "completed", None, (50_000, 0), "succeeded"),
    ],
)
def test_staff_complete_an_overdue_refund_as_the_bank_says(
    refund_shop: RefundShop,
    silent: Bank,
    malee: Client,
    action: str,
    status: str,
    code: str | None,
    balance: Any,
    history: str,
) -> None:
    made = refunded(refund_shop)
    run_action(malee, action, overdue_transfer())
    ended = refund_shop.read(made)
    assert (ended["status"], ended["failure_code"], refund_shop.balance()) == (status, code, balance)
    assert [entry[0] for entry in refund_shop.history()] == [history]
    assert Event.objects.filter(subject_id=made["refund_id"], type=f"refund.{status}").count() == 1


@pytest.mark.parametrize(("first", "second"), [("arrived", "never_arrived"), ("never_arrived", "arrived")])
def test_second_completion_of_an_overdue_order_changes_nothing(
    refund_shop: RefundShop, silent: Bank, malee: Client, first: str, second: str
) -> None:
    made = withdrawn(refund_shop)
    transfer = overdue_transfer()
    run_action(malee, first, transfer)
    ended = withdrawals.fetch_withdrawal(refund_shop.shop, made)
    somsak = staff("somsak", "complete_transfer")
    for again in (first, second):
        assert "Nothing changed" in run_action(somsak, again, transfer)
    assert withdrawals.fetch_withdrawal(refund_shop.shop, made) == ended
    assert (Transfer.objects.get().completed_by, acts_of_staff().count()) == ("staff:malee", 1)


def test_order_that_was_not_submitted_cannot_be_completed_by_staff(
    refund_shop: RefundShop, silent: Bank, malee: Client
) -> None:
    refund_shop.paid()
    made = withdrawals.withdrawn(refund_shop.shop)
    for action in ("arrived", "never_arrived"):
        assert "Nothing changed" in run_action(malee, action, Transfer.objects.get())
    assert withdrawals.fetch_withdrawal(refund_shop.shop, made) == made


def test_order_that_the_bank_answered_cannot_be_completed_by_staff(
    refund_shop: RefundShop, silent: Bank, malee: Client
) -> None:
    made, order = withdrawn(refund_shop), overdue_transfer()
    answer = ReportedTransfer(order.id, "succeeded", "b-1")
    transfers.apply_notification(answer, HANDLERS["wd"], now=clock.now())
    assert "Nothing changed" in run_action(malee, "never_arrived", order)
    assert withdrawals.fetch_withdrawal(refund_shop.shop, made)["status"] == "succeeded"


def test_order_that_is_not_overdue_cannot_be_completed_by_staff(
    refund_shop: RefundShop, silent: Bank, malee: Client
) -> None:
    made = withdrawn(refund_shop)
    soon = overdue_transfer(OVERDUE_AFTER - timedelta(minutes=1))
    assert "Nothing changed" in run_action(malee, "never_arrived", soon)
    assert withdrawals.fetch_withdrawal(refund_shop.shop, made)["status"] == "processing"


@pytest.mark.parametrize("action", ["arrived", "never_arrived"])
def test_view_permission_does_not_allow_completing_orders(
    refund_shop: RefundShop, silent: Bank, action: str
) -> None:
    made = withdrawn(refund_shop)
    transfer = overdue_transfer()
    for permissions in ([], ["change_transfer"], ["cancel_transfer"]):
        intern = staff("-".join(["intern", *permissions]), *permissions)
        assert send_act(intern, Transfer, transfer.id, action.replace("_", "-")).status_code == 403
    assert withdrawals.fetch_withdrawal(refund_shop.shop, made)["status"] == "processing"
    assert (Transfer.objects.get().completed_by, acts_of_staff().count()) == ("", 0)


def test_bank_answer_that_contradicts_a_manual_completion_is_an_exception(
    refund_shop: RefundShop, silent: Bank, malee: Client
) -> None:
    made = withdrawn(refund_shop)
    transfer = overdue_transfer()
    run_action(malee, "never_arrived", transfer)
    assert (
        transfers.classify_notification(ReportedTransfer(transfer.id, "succeeded"), bank="sandbox")
        == "conflict"
    )
    withdrawals.send_due_withdrawals(2)
    assert withdrawals.fetch_withdrawal(refund_shop.shop, made)["status"] == "failed"


def test_actor_of_a_manual_completion_is_stored(refund_shop: RefundShop, silent: Bank, malee: Client) -> None:
    withdrawn(refund_shop)
    transfer = overdue_transfer()
    with pytest.raises(DatabaseError, match=r"names who ended it|completed_by"), transaction.atomic():
        Transfer.objects.update(completed_by="somsak")
    run_action(malee, "arrived", transfer)
    with pytest.raises(DatabaseError, match="names who ended it"), transaction.atomic():
        Transfer.objects.update(completed_by="somsak")


@pytest.mark.django_db(transaction=True)
def test_concurrent_manual_completions_count_once(refund_shop: RefundShop, silent: Bank) -> None:
    withdrawn(refund_shop)
    transfer = overdue_transfer()

    def settle(result: TransferResult) -> bool:
        try:
            complete_order(transfer.id, result)
        except transfers.NotOverdue:
            return False
        return True

    arrived = [lambda: settle(transfers.ARRIVED)] * 4
    assert sum(run_concurrently(*arrived, *[lambda: settle(transfers.NEVER_ARRIVED)] * 4)) == 1
    assert refund_shop.balance() in [(50_000, 0), (150_000, 0)]
