"""While a merchant's balance is negative, no bank is told of a withdrawal."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.db import DatabaseError, connection, transaction
from django.test import Client
from pytest_django import Settings

from banks import TransferResult
from core import clock
from ledger import services as ledger
from tests.approvals.builders import decide_approval, staff
from tests.conftest import Shop, open_shop
from tests.reconciliation.cast import Till, postings_of
from tests.reconciliation.conftest import till
from tests.refunds.builders import send_due_refunds
from tests.transfers.builders import Bank, pass_time
from tests.withdrawals.builders import PATH, fetch_withdrawal, send_due_withdrawals, withdrawn
from transfers.models import Transfer, TransferEvent
from withdrawals import services
from withdrawals.models import Withdrawal

__all__ = ["till"]

LISTED = "/admin/withdrawals/withdrawal/"
Serving = Callable[..., Bank]
pytestmark = [pytest.mark.slow, pytest.mark.django_db, pytest.mark.usefixtures("audit_is_clean")]
SUM = 200_000


@pytest.fixture
def shop(db: None) -> Shop:
    """A shop without money; these tests say what comes in."""
    return open_shop("Somtam House")


@pytest.fixture
def bank_of_shop(served_by: Serving) -> Bank:
    return served_by(sends=[TransferResult("succeeded", "b-1")])


def held(till: Till) -> dict[str, Any]:
    """A withdrawal of all that was paid, after which the bank has taken the payment back."""
    credit = till.sold(SUM)
    made = withdrawn(till.shop, amount=SUM)
    till.takes_back(credit)
    return made


def steps() -> list[str]:
    return list(TransferEvent.objects.order_by("pk").values_list("type", flat=True))


def try_again(times: int = 1) -> None:
    for _ in range(times):
        pass_time()
        send_due_withdrawals()


def metric(name: str) -> float:
    lines = Client().get("/metrics").content.decode().splitlines()
    return next(float(line.split()[1]) for line in lines if line.startswith(f"{name} "))


def test_a_withdrawal_is_not_submitted_after_its_money_was_reversed(till: Till, bank_of_shop: Bank) -> None:
    made = held(till)
    try_again(3)
    assert bank_of_shop.sent == []
    shown = fetch_withdrawal(till.shop, made)
    assert (shown["status"], shown["pending_reason"]) == ("pending", "negative_balance")
    assert till.shop.get(PATH).json()["withdrawals"] == [shown]
    assert till.held() == {"available": 0, "reserved": SUM, "owed": SUM}
    assert steps() == ["queued", "held"]


def test_an_approval_does_not_send_a_held_withdrawal(
    till: Till, bank_of_shop: Bank, settings: Settings
) -> None:
    settings.APPROVAL_ITEM_LIMIT = 100_000
    made = held(till)
    assert fetch_withdrawal(till.shop, made)["pending_reason"] == "negative_balance"
    decide_approval(made["withdrawal_id"], "approve")
    try_again(2)
    assert (bank_of_shop.sent, fetch_withdrawal(till.shop, made)["status"]) == ([], "pending")
    till.sold(SUM)
    try_again()
    assert bank_of_shop.sent == [made["withdrawal_id"]]


def test_the_hold_ends_when_later_payments_have_paid_the_debt(till: Till, bank_of_shop: Bank) -> None:
    made = held(till)
    try_again()
    till.sold(SUM - 100)
    try_again()
    assert (bank_of_shop.sent, fetch_withdrawal(till.shop, made)["pending_reason"]) == (
        [],
        "negative_balance",
    )
    till.sold(100)
    assert fetch_withdrawal(till.shop, made)["pending_reason"] is None
    try_again()
    assert bank_of_shop.sent == [made["withdrawal_id"]]
    assert fetch_withdrawal(till.shop, made)["status"] == "succeeded"
    assert steps() == ["queued", "held", "submitted", "succeeded"]
    assert till.held() == {"available": 0, "reserved": 0}


def test_a_merchant_without_debt_is_not_held(till: Till, bank_of_shop: Bank) -> None:
    credit = till.sold(SUM)
    till.sold(SUM)
    made = withdrawn(till.shop, amount=SUM)
    till.takes_back(credit)
    assert fetch_withdrawal(till.shop, made)["pending_reason"] is None
    try_again()
    assert bank_of_shop.sent == [made["withdrawal_id"]]


def test_the_money_of_a_held_withdrawal_that_is_canceled_pays_the_debt_first(
    till: Till, bank_of_shop: Bank
) -> None:
    credit = till.sold(SUM)
    first, second = (withdrawn(till.shop, amount=SUM // 2) for _ in range(2))
    till.takes_back(credit, SUM - 50_000)
    answer = till.shop.post(f"{PATH}/{first['withdrawal_id']}/cancel")
    assert (answer.status_code, answer.json()["pending_reason"]) == (200, None)
    assert till.held() == {"available": 0, "reserved": SUM // 2, "owed": 50_000}
    try_again()
    assert bank_of_shop.sent == []
    assert till.shop.post(f"{PATH}/{second['withdrawal_id']}/cancel").status_code == 200
    assert till.held() == {"available": 50_000, "reserved": 0}
    ledger.roll_up_due(now=clock.now())
    assert till.held() == {"available": 50_000, "reserved": 0}


def test_a_held_withdrawal_that_staff_reject_pays_the_debt(till: Till, settings: Settings) -> None:
    settings.APPROVAL_ITEM_LIMIT = 100_000
    made = held(till)
    decide_approval(made["withdrawal_id"], "reject")
    assert fetch_withdrawal(till.shop, made)["status"] == "failed"
    assert till.held() == {"available": 0, "reserved": 0}


def test_a_withdrawal_whose_bank_could_not_be_reached_is_held_too(till: Till, served_by: Serving) -> None:
    bank = served_by(sends=[TransferResult("not_sent"), TransferResult("succeeded", "b-1")])
    credit = till.sold(SUM)
    made = withdrawn(till.shop, amount=SUM)
    send_due_withdrawals()
    till.takes_back(credit)
    try_again(2)
    assert bank.sent == [made["withdrawal_id"]]
    assert steps() == ["queued", "submitted", "not_sent", "held"]
    till.sold(SUM)
    try_again()
    assert fetch_withdrawal(till.shop, made)["status"] == "succeeded"


def test_a_refund_is_not_held(till: Till, bank_of_shop: Bank) -> None:
    first, second = till.sold(SUM), till.sold(SUM)
    till.refund(str(first.payment_id), amount=SUM)
    withdrawn(till.shop, amount=SUM)
    till.takes_back(second)
    send_due_refunds(2)
    assert till.shop.payment(str(first.payment_id))["status"] == "refunded"


def test_staff_see_the_debt_and_what_is_held(till: Till) -> None:
    made, malee = held(till), staff("malee", "view_withdrawal")
    page = malee.get(f"{LISTED}{made['withdrawal_id']}/change/").content.decode()
    assert "Merchant owes" in page
    assert "2,000.00 THB" in page
    assert made["withdrawal_id"] in malee.get(f"{LISTED}?hold=held").content.decode()
    till.sold(SUM)
    assert made["withdrawal_id"] not in malee.get(f"{LISTED}?hold=held").content.decode()


def test_held_withdrawals_and_debts_are_counted(till: Till) -> None:
    names = ["merchants_in_debt", "merchant_debt_satang", "withdrawals_held", "withdrawals_held_satang"]
    assert [metric(name) for name in names] == [0, 0, 0, 0]
    held(till)
    till.sold(50_000)
    assert [metric(name) for name in names] == [1, SUM - 50_000, 1, SUM]
    till.sold(SUM)
    assert [metric(name) for name in names] == [0, 0, 0, 0]


def test_held_withdrawal_is_not_overdue_at_its_bank(till: Till, bank_of_shop: Bank) -> None:
    held(till)
    later = clock.now() + timedelta(days=2)
    assert Transfer.objects.open_since(later).count() == 1
    try_again()
    assert steps()[-1] == "held"
    assert Transfer.objects.open_since(later).count() == 0


def test_the_database_refuses_to_submit_in_debt(till: Till) -> None:
    held(till)
    with (
        pytest.raises(DatabaseError, match="a merchant with a debt cannot send money"),
        transaction.atomic(),
        connection.cursor() as cursor,
    ):
        cursor.execute("UPDATE transfers_transfer SET state = 'submitted', submitted_at = now()")
    assert Transfer.objects.get().state == "queued"


def test_debt_includes_pending_entries(till: Till) -> None:
    held(till)
    till.sold(SUM)
    assert services.is_in_debt(till.shop.merchant.id) is False
    assert ledger.debts() == {}
    reversal_id = till.takes_back(till.sold(70_000)).id
    assert postings_of(reversal_id) == [("reversal", 70_000)]
    assert Withdrawal.objects.held(ledger.debts()).count() == 0
